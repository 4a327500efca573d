package trace

import "github.com/mattn/go-sqlite3"

// SQLiteVersion returns the version of the SQLite that stores are written with.
func SQLiteVersion() string {
	v, _, _ := sqlite3.Version()
	return v
}
