package trace

import (
	"context"
	"database/sql/driver"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/mattn/go-sqlite3"
)

const (
	applicationID = 0x7067796d // "pgym"
	schemaVersion = 4
	defaultName   = "trace.db"
)

//go:embed schema.sql
var schema string

// since begins, by schema, what a file of that schema lacks. Schema 3 has no table more than 2.
var since = map[int64]string{1: "-- Since schema 2\n", 2: "-- Since schema 4\n", 3: "-- Since schema 4\n"}

// required are the compile options that the build flags must have given SQLite: no extension can be loaded into the
// process, and packs can capture changes.
var required = []string{"OMIT_LOAD_EXTENSION", "ENABLE_PREUPDATE_HOOK"}

func missingOptions(have []string) []string {
	return slices.DeleteFunc(slices.Clone(required), func(o string) bool { return slices.Contains(have, o) })
}

// filePath turns a folder or a .db file into an absolute file, making its folder.
func filePath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("trace: %w", err)
	}
	if filepath.Ext(abs) != ".db" {
		abs = filepath.Join(abs, defaultName)
	}
	if err := os.MkdirAll(filepath.Dir(abs), 0o777); err != nil {
		return "", fmt.Errorf("trace: make the folder of %s: %w; choose a folder that you can write to", abs, err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("trace: %w", err)
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

func dsn(path, query string) string {
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query}).String()
}

// file is one SQLite connection that writes a trace. One goroutine uses it.
type file struct {
	path string
	conn *sqlite3.SQLiteConn
	lock *os.File
	stmt map[string]*sqlite3.SQLiteStmt
	args []driver.NamedValue
}

// openFile locks, opens and if need be creates the file.
func openFile(path string, d Durability) (_ *file, err error) {
	f := &file{path: path, stmt: map[string]*sqlite3.SQLiteStmt{}}
	if f.lock, err = lockFile(path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(explain(path, err), f.close())
		}
	}()
	c, err := (&sqlite3.SQLiteDriver{}).Open(dsn(path, "mode=rwc"))
	if err != nil {
		return nil, err
	}
	f.conn = c.(*sqlite3.SQLiteConn)
	version, err := f.identify()
	if err != nil {
		return nil, err
	}
	sync := "NORMAL"
	if d == Full {
		sync = "FULL"
	}
	setup := []string{"PRAGMA journal_mode = WAL", "PRAGMA synchronous = " + sync, "PRAGMA wal_autocheckpoint = 1000"}
	commit := []string{fmt.Sprintf("PRAGMA user_version = %d", schemaVersion), "COMMIT"}
	switch version {
	case 0:
		setup = append([]string{"PRAGMA page_size = 8192"}, setup...)
		setup = append(setup, "BEGIN", schema, fmt.Sprintf("PRAGMA application_id = %d", applicationID))
		setup = append(setup, commit...)
	case 1, 2, 3:
		_, added, _ := strings.Cut(schema, since[version])
		setup = append(setup, "BEGIN", added)
		setup = append(setup, commit...)
	}
	for _, s := range setup {
		if _, err = f.conn.Exec(s, nil); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// identify returns the schema of the file, 0 if it is still empty, and an error if it is anything but a trace of a schema
// that is known. It changes nothing, since the file may be somebody else's.
func (f *file) identify() (version int64, err error) {
	rows, err := f.query("PRAGMA compile_options", 1)
	if err != nil {
		return 0, err
	}
	have := make([]string, len(rows))
	for i := range rows {
		have[i] = rows[i][0].(string)
	}
	if missing := missingOptions(have); len(missing) > 0 {
		return 0, fmt.Errorf("SQLite was built without %s: build with the tags of gobuild.json", strings.Join(missing, ", "))
	}
	var id [3]int64
	for i, q := range []string{"PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master"} {
		if rows, err = f.query(q, 1); err != nil {
			return 0, err
		}
		id[i] = rows[0][0].(int64)
	}
	if id == [3]int64{} {
		return 0, nil
	}
	return id[1], checkIdentity(id[0], id[1])
}

func checkIdentity(application, version int64) error {
	switch {
	case application != applicationID:
		return fmt.Errorf("%w: it is another program's database; give a path of its own", ErrNotTrace)
	case version > schemaVersion:
		return fmt.Errorf("%w: %d, and this provegym knows %d; update provegym", ErrNewer, version, schemaVersion)
	case version < 1:
		return fmt.Errorf("%w: schema %d is none of its versions", ErrNotTrace, version)
	}
	return nil
}

// bind prepares s once and sets its arguments.
func (f *file) bind(s string, args []any) (*sqlite3.SQLiteStmt, error) {
	st := f.stmt[s]
	if st == nil {
		p, err := f.conn.Prepare(s)
		if err != nil {
			return nil, err
		}
		st = p.(*sqlite3.SQLiteStmt)
		f.stmt[s] = st
	}
	f.args = f.args[:0]
	for i, a := range args {
		if n, ok := a.(int); ok {
			a = int64(n)
		}
		f.args = append(f.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return st, nil
}

// exec runs a statement and returns the last row's id.
func (f *file) exec(s string, args ...any) (int64, error) {
	st, err := f.bind(s, args)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(context.Background(), f.args)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// query returns all rows of a small result.
func (f *file) query(s string, columns int, args ...any) ([][]driver.Value, error) {
	st, err := f.bind(s, args)
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(context.Background(), f.args)
	if err != nil {
		return nil, err
	}
	var out [][]driver.Value
	for {
		row := make([]driver.Value, columns)
		switch err := rows.Next(row); err {
		case nil:
			out = append(out, row)
		case io.EOF:
			return out, rows.Close()
		default:
			return nil, errors.Join(err, rows.Close())
		}
	}
}

// transact runs do in a transaction.
func (f *file) transact(do func() error) error {
	if _, err := f.exec("BEGIN"); err != nil {
		return err
	}
	err := do()
	if err == nil {
		_, err = f.exec("COMMIT")
	}
	if err != nil && !f.conn.AutoCommit() { // a full disk may have rolled it back already
		_, rerr := f.exec("ROLLBACK")
		err = errors.Join(err, rerr)
	}
	return err
}

// close leaves one plain file, readable from anywhere, unless a reader still needs the log.
func (f *file) close() error {
	var errs []error
	if f.conn != nil {
		for _, st := range f.stmt {
			errs = append(errs, st.Close())
		}
		var busy sqlite3.Error
		if _, err := f.conn.Exec("PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE", nil); !errors.As(err, &busy) || busy.Code != sqlite3.ErrBusy {
			errs = append(errs, err)
		}
		errs = append(errs, f.conn.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(explain(f.path, err), unlock(f.lock))
	}
	return unlock(f.lock)
}

// lockFile takes the lock beside the file. The kernel releases it when the process ends, however it ends. The database
// itself cannot carry it: closing a second descriptor of it would drop SQLite's own locks.
func lockFile(path string) (*os.File, error) {
	name := path + ".lock"
	for {
		l, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, fmt.Errorf("trace: lock %s: %w; choose a folder that you can write to", path, err)
		}
		if err := syscall.Flock(int(l.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			l.Close() // nothing was written
			return nil, fmt.Errorf("%w: %s; give this process a file of its own", ErrInUse, path)
		}
		mine, err1 := l.Stat()
		there, err2 := os.Stat(name)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return l, nil
		}
		l.Close() // its owner removed the name before we got the lock; try again
	}
}

func unlock(l *os.File) error {
	return errors.Join(os.Remove(l.Name()), l.Close())
}

// explain says what an error of SQLite means for the user.
func explain(path string, err error) error {
	var e sqlite3.Error
	if err == nil || !errors.As(err, &e) {
		if err == nil {
			return nil
		}
		return fmt.Errorf("trace %s: %w", path, err)
	}
	advice := ""
	switch {
	case e.Code == sqlite3.ErrFull:
		advice = ": no space is left; make some, then resume the run"
	case e.Code == sqlite3.ErrReadonly, e.Code == sqlite3.ErrCantOpen, e.Code == sqlite3.ErrPerm:
		advice = ": choose a file in a folder that you can write to"
	case e.Code == sqlite3.ErrNotADB:
		return fmt.Errorf("trace %s: %w: it is no SQLite file; give a path of its own", path, ErrNotTrace)
	case e.Code == sqlite3.ErrCorrupt:
		advice = ": the file is damaged; trace verify says where"
	case e.ExtendedCode == sqlite3.ErrConstraintUnique:
		advice = ": a sealed slot was filled twice; FilledSlots lists those that must not run again"
	}
	return fmt.Errorf("trace %s: %w%s", path, err, advice)
}
