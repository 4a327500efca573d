package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"provegym/gym"
)

// ExportedEpisode is one line of an export.
type ExportedEpisode struct {
	Episode
	Instruction string         `json:"instruction,omitempty"`
	Trajectory  []ExportedStep `json:"trajectory"`
	// Explanation takes the reward apart; nil where Reader.Explanation has none.
	Explanation *gym.Explanation `json:"explanation,omitempty"`
}

// ExportedStep is a step with its text.
type ExportedStep struct {
	Step
	Result string `json:"result,omitempty"` // what the agent was shown; structured: of the call that the step completed
}

// ExportJSONL writes the episodes that f selects to w, one JSON object a line, with the full text of what the agent was told
// and shown, rebuilt by replay. Those of episodes of packs that do not replay were recorded.
//
// Errors: gym.ErrSnapshot if an episode does not replay to what was recorded; what w returned.
func (r *Reader) ExportJSONL(w io.Writer, f Filter) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	var ep gym.Episode
	for left := f.Limit; ; {
		page := f
		page.Limit = pageEpisodes
		if f.Limit > 0 {
			page.Limit = min(left, pageEpisodes)
		}
		rows, err := r.Episodes(page)
		if err != nil {
			return err
		}
		for i := range rows {
			x, err := r.export(&rows[i], &ep)
			if err == nil {
				err = out.Encode(x)
			}
			if err != nil {
				return fmt.Errorf("export episode %d: %w", rows[i].ID, err)
			}
			f.After = rows[i].ID
		}
		left -= len(rows)
		if len(rows) < page.Limit || f.Limit > 0 && left <= 0 {
			return nil
		}
	}
}

func (r *Reader) export(row *Episode, ep *gym.Episode) (*ExportedEpisode, error) {
	x := &ExportedEpisode{Episode: *row, Trajectory: []ExportedStep{}}
	calls := 0
	err := r.rebuild(row, ep, func(s *Step) error {
		if s == nil {
			x.Instruction = ep.Instruction()
			return nil
		}
		step := ExportedStep{Step: *s}
		if ep.Calls() > calls {
			calls, step.Result = ep.Calls(), string(ep.Result())
		}
		x.Trajectory = append(x.Trajectory, step)
		return nil
	})
	var not *notReplayable
	if err == nil && (row.Outcome == gym.Scored || row.Outcome == gym.Truncated) && ep.Outcome() != gym.Running {
		x.Explanation, err = ep.Explain()
	}
	if !errors.As(err, &not) {
		return x, err
	}
	steps, err := r.Steps(row.ID)
	if err != nil {
		return nil, err
	}
	recorded, err := r.recordedExplanation(row.ID, nil)
	for i := range recorded {
		x.Explanation = &recorded[i]
	}
	for _, s := range steps {
		x.Instruction += s.Told
		shown := s.Shown
		s.Told, s.Shown = "", ""
		x.Trajectory = append(x.Trajectory, ExportedStep{Step: s, Result: shown})
	}
	return x, err
}
