package terminal

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"provegym/gym"
)

// reader solves tasks as a careful person would who knows the kinds of work and nothing of the task: it goes by the instruction, the
// documents and what commands print. It shows that what agents are told is enough. It needs awk and tar, and paths that are told.
type reader struct {
	at    map[string]string // paths that the instruction gives, by role
	docs  []string          // still to be read
	texts []string          // as read
	refs  []gym.Value       // the first of each document
	next  func(ep *gym.Episode) gym.Call
	last  bool
}

func newReader(ep *gym.Episode) *reader {
	r := &reader{at: map[string]string{}}
	_, pins := ep.Goal()
	for _, p := range pins {
		r.at[p.Role] = p.Value.Text
	}
	switch task := ep.Task(); task.Family {
	case "config":
		r.docs, r.next = r.paths("sheet", "overrides"), r.work(codeRepaired, r.config)
	case "report":
		r.docs, r.next = r.paths("rules", "voids"), r.work(codeReported, r.report)
	case "rename":
		r.docs, r.next = r.paths("rule", "holds"), r.work(codeFiled, r.rename)
	case "purge":
		r.docs, r.next = r.paths("policy", "pins"), r.work(codePurged, r.purge)
	case "restore":
		r.docs, r.next = r.paths("manifest", "retired"), r.work(codeRestored, r.restore)
	default:
		r.docs, r.next = r.paths("runbook"), r.runbook
	}
	return r
}

func (r *reader) paths(roles ...string) (out []string) {
	for _, role := range roles {
		if p := r.at[role]; p != "" {
			out = append(out, p)
		}
	}
	return out
}

var refPattern = regexp.MustCompile(`r-([0-9a-f]{10})`)

func (r *reader) Act(ep *gym.Episode, call *gym.Call) bool {
	switch {
	case r.last || len(r.at) == 0: // it has answered, or has not been told where to look
		return false
	case len(r.texts) > 0 || ep.Calls() > 0:
		if len(r.texts) < ep.Calls() {
			r.took(ep.Result())
		}
	}
	if len(r.docs) > 0 {
		*call = callOf(toolRead, text(typePath, r.docs[0]))
		r.docs = r.docs[1:]
		return true
	}
	*call = r.next(ep)
	r.last = call.Tool == toolFinish
	return true
}

// took keeps what a call has shown.
func (r *reader) took(result []byte) {
	var shown struct{ OK struct{ Text, Stdout string } }
	_ = json.Unmarshal(result, &shown) // an error has neither
	all := shown.OK.Text + shown.OK.Stdout
	r.texts = append(r.texts, all)
	if m := refPattern.FindStringSubmatch(all); m != nil {
		var code uint64
		fmt.Sscanf(m[1], "%x", &code)
		r.refs = append(r.refs, gym.Value{Type: typeRef, Bits: code})
	}
}

// work runs one command and then answers with the refs of what was read.
func (r *reader) work(code uint64, script func(ep *gym.Episode) string) func(ep *gym.Episode) gym.Call {
	ran := false
	return func(ep *gym.Episode) gym.Call {
		if !ran {
			ran = true
			return runs(script(ep))
		}
		return answerWith(done, code, r.refs)
	}
}

func answerWith(outcome, code uint64, refs []gym.Value) gym.Call {
	c := answerOf(outcome, code, nil)
	c.Push(argEvidence, refs...)
	return c
}

// find returns the groups of a pattern in a text, blank if there is no match.
func find(pattern, in string) []string {
	re := regexp.MustCompile(pattern)
	if m := re.FindStringSubmatch(in); m != nil {
		return m[1:]
	}
	return make([]string, re.NumSubexp())
}

// fill puts values into a script, quoted, each in place of a name in capitals. They are put in in order: what has capitals itself comes last.
func fill(script string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		script = strings.ReplaceAll(script, pairs[i], quote(pairs[i+1]))
	}
	return script
}

func (r *reader) config(ep *gym.Episode) string {
	return fill(`awk -v svc=SVC -v sheet=SHEET -v over=OVER '
BEGIN { while ((getline l < sheet) > 0) if (split(l, f, " ") == 2 && ++i > 2) { order[++n] = f[1]; want[f[1]] = f[2] }
  while ((getline l < over) > 0) { split(l, f, " "); if (f[1] == svc && (f[2] in want)) want[f[2]] = f[3] } }
$2 == "=" && ($1 in want) { print $1 " = " want[$1]; seen[$1] = 1; next }
{ print }
END { for (i = 1; i <= n; i++) if (!(order[i] in seen)) print order[i] " = " want[order[i]] }' CONF >/tmp/new && cat /tmp/new >CONF`,
		"SVC", find(`another for (\S+), which`, ep.Instruction())[0], "SHEET", r.at["sheet"], "OVER", r.at["overrides"], "CONF", r.at["file"])
}

func (r *reader) report(ep *gym.Episode) string {
	return fill(`awk -F, -v st=STATUS -v voids=VOIDS '
BEGIN { while ((getline l < voids) > 0) { split(l, f, " "); void[f[1]] = 1 } }
FNR > 1 && $3 == st && !($1 in void) { count[$2]++; total[$2] += $4 }
END { for (r in count) print r "," count[r] "," total[r] }' DATA/*.csv | sort >/tmp/lines; { echo region,count,total; cat /tmp/lines; } >OUT`,
		"STATUS", find(`status (\S+) count`, r.texts[0])[0], "VOIDS", r.at["voids"], "DATA", r.at["records"],
		"OUT", r.at["reports"]+"/"+find(`report (\S+\.csv)`, ep.Instruction())[0])
}

func (r *reader) rename(*gym.Episode) string {
	to := `$y/$num-$kind.txt`
	switch {
	case strings.Contains(r.texts[0], "YYYY/MM"):
		to = `$y/$m/$b`
	case strings.Contains(r.texts[0], "like its kind"):
		to = `$kind/$date-$num.txt`
	}
	return fill(`for f in INBOX/*; do
b=${f##*/}; base=${b%.txt}; num=${base##*_}; rest=${base%_*}; date=${rest##*_}; kind=${rest%_*}
[ "$b" = "${kind}_${date}_$num.txt" ] || continue
case $num in ''|*[!0-9]*) continue;; esac
case $date in [0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]) ;; *) continue;; esac
grep -qxF -- "$b" HOLDS && continue
y=${date%????}; m=${date#????}; m=${m%??}
to=DEST/"`+to+`"; mkdir -p "${to%/*}"; mv "$f" "$to"
done`, "INBOX", r.at["inbox"], "HOLDS", r.at["holds"], "DEST", r.at["filing directory"])
}

func (r *reader) purge(*gym.Episode) string {
	return fill(`cd STORE && ls -r | while IFS= read -r b; do
case $b in *-[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].dump) ;; *) continue;; esac
[ ! -e "$b.hold" ] || continue
grep -qxF -- "$b" PINS && continue
s=${b%-????-??-??.dump}
[ "$s" = "$last" ] || { last=$s; k=0; }
k=$((k+1)); [ $k -le KEEP ] || rm -- "./$b"
done`, "STORE", r.at["dumps"], "PINS", r.at["pins"], "KEEP", find(`newest (\d+) stay`, r.texts[0])[0])
}

func (r *reader) restore(*gym.Episode) string {
	return fill(`cd SITE && grep -v '^#' MANIFEST | while IFS= read -r l; do
sum=${l%%  *}; name=${l#*  }
grep -qxF -- "$name" RETIRED && continue
[ "$(sha256sum <"$name" 2>/dev/null)" = "$sum  -" ] && continue
for a in BACKUPS/*.tar; do
  tar -xOf "$a" -- "$name" >/tmp/f 2>/dev/null
  [ "$(sha256sum </tmp/f)" = "$sum  -" ] || continue
  cat /tmp/f >"$name"
  case $(tar -tvf "$a" -- "$name") in -rwx*) chmod +x "$name";; esac
  break
done; done`, "SITE", r.at["site"], "MANIFEST", r.at["manifest"], "RETIRED", r.at["retired"], "BACKUPS", r.at["backups"])
}

// runbook reads what the runbook names, and goes by that.
func (r *reader) runbook(ep *gym.Episode) gym.Call {
	book := r.texts[0]
	lock, calendar := find(`1\. Look at (\S+)\. If`, book)[0], find(`2\. Look at (\S+)\. If`, book)[0]
	packages, sums := find(`package (\S+)/\S+\.pkg with its sha256 in (\S+)\.`, book)[0], find(`package (\S+)/\S+\.pkg with its sha256 in (\S+)\.`, book)[1]
	state, pinned := find(`directory below (\S+) whose`, book)[0], find(`those that (\S+) names`, book)[0]
	you := find(`You are (\S+)\. Deploy version (\S+) of (\S+) by`, ep.Instruction())
	team, version, service := you[0], you[1], you[2]
	pkg := packages + "/" + service + "-" + version + ".pkg"
	stop := func(code uint64, i int) gym.Call { return answerWith(blocked, code, r.refs[i:i+1]) }
	switch len(r.texts) {
	case 1, 2, 3, 4:
		return callOf(toolRead, text(typePath, []string{lock, calendar, sums, pinned}[len(r.texts)-1]))
	case 5:
		return runs("sha256sum <" + quote(pkg))
	case 6:
		today := find(`today (\S+)`, r.texts[2])[0] // dates are in the order of their spellings
		for _, m := range regexp.MustCompile(`freeze (\S+) to (\S+)`).FindAllStringSubmatch(r.texts[2], -1) {
			if m[1] <= today && today <= m[2] {
				return stop(codeFrozen, 2)
			}
		}
		switch sum, _, _ := strings.Cut(r.texts[5], " "); {
		case find(`owner: (\S+)`, r.texts[1])[0] != team:
			return stop(codeLocked, 1)
		case !slices.Contains(strings.Split(r.texts[3], "\n"), sum+"  "+path.Base(pkg)):
			return stop(codeDamaged, 3)
		}
		return runs(fill(`for d in STATE/*shard*; do [ -d "$d" ] || continue
grep -qxF -- "${d##*/}" PINNED && continue
cat "$d/current.txt" >"$d/previous.txt"; cat PKG >"$d/current.txt"
done; echo VERSION >VFILE; echo "deploy "VERSION" by "TEAM >>JOURNAL`, "VERSION", version, "TEAM", team, "STATE", state, "PINNED", pinned, "PKG", pkg, "VFILE", find(`version into (\S+): one`, book)[0],
			"JOURNAL", find(`at the end of (\S+)\.\n`, book)[0]))
	}
	return answerWith(done, codeDeployed, []gym.Value{r.refs[0], r.refs[4]})
}
