package vector

import (
	"fmt"
	"slices"

	"provegym/gym"
)

// Snapshot returns row i's whole episode as bytes that Restore takes, here or in another process with the same pack.
//
// Errors: ErrState when the row has no episode; gym.ErrSnapshot if the pack is not deterministic.
func (v *Vector) Snapshot(i int) ([]byte, error) {
	r, err := v.withEpisode(i)
	if err != nil {
		return nil, err
	}
	return r.ep.Export()
}

// Restore makes row i continue from a snapshot, ended ones too, and writes the row as its last step left it. The gate of mode
// and split holds. On an error the row is as it was.
//
// Errors: gym.ErrSnapshot (another pack or view, or the replay's digest differs), gym.ErrHeldOut, gym.ErrBadInput, ErrState.
func (v *Vector) Restore(i int, data []byte) error {
	r, err := v.target(i)
	if err != nil {
		return err
	}
	ep := &gym.Episode{}
	if err := Guard(v.cfg.Pack, ep, func() error { return ep.Import(data, v.options(v.cfg.Labels)) }); err != nil {
		return err
	}
	if p := ep.Pack(); p != v.cfg.Pack {
		return fmt.Errorf("%w: it is of pack %s, and this vector of %s", gym.ErrSnapshot, p.Name, v.cfg.Pack.Name)
	}
	if !r.lost {
		r.ep.Flush()
	}
	r.ep = ep
	if r.run != nil {
		r.run.ep = ep // the runner is idle; it reads ep after its next receive
	}
	v.continueFrom(i, r)
	return v.publish()
}

// Fork copies row src's live episode, in memory, into the rows dst, and writes those as src's last step left it.
//
// Errors: gym.ErrBadInput for a row that does not exist or is src itself, ErrState when src has no live episode.
func (v *Vector) Fork(src int, dst []uint32) error {
	r, err := v.withEpisode(src)
	if err != nil {
		return err
	}
	if r.phase != live {
		return fmt.Errorf("%w: the episode of row %d has ended", ErrState, src)
	}
	if slices.Contains(dst, uint32(src)) {
		return fmt.Errorf("%w: row %d cannot be forked into itself", gym.ErrBadInput, src)
	}
	for _, i := range dst {
		if _, err := v.target(int(i)); err != nil {
			return err
		}
	}
	if err := r.ep.Snapshot(&v.spare); err != nil {
		return err
	}
	for _, i := range dst {
		to := &v.rows[i]
		if err := to.ep.Restore(&v.spare, v.options(r.ep.Labels())); err != nil {
			return err
		}
		v.continueFrom(int(i), to)
	}
	return v.publish()
}

func (v *Vector) withEpisode(i int) (*row, error) {
	r, err := v.at(i)
	if err == nil && r.lost {
		err = fmt.Errorf("%w: row %d has no episode: %s", ErrState, i, r.why)
	}
	return r, err
}

// target returns row i if an episode may be put there.
func (v *Vector) target(i int) (*row, error) {
	if err := v.usable(); err != nil {
		return nil, err
	}
	if i < 0 || i >= len(v.rows) {
		return nil, fmt.Errorf("%w: row %d; there are %d, from 0", gym.ErrBadInput, i, len(v.rows))
	}
	if v.rows[i].flying {
		return nil, fmt.Errorf("%w: row %d is in flight: receive it first", ErrState, i)
	}
	return &v.rows[i], nil
}

// continueFrom makes the row show r.ep, which someone else has put there.
func (v *Vector) continueFrom(i int, r *row) {
	if r.phase == live {
		v.lose(&r.job)
	}
	r.job, v.named = job{}, false
	r.task, r.id = r.ep.Task(), r.ep.Task().ID()
	r.lost, r.broken, r.why, r.ended, r.all = false, nil, "", false, true
	r.outcome, r.limit, r.reward, r.calls, r.parts = r.ep.Outcome(), r.ep.Limit(), r.ep.Reward(), r.ep.Calls(), 0
	r.rec = r.ep.RecordID()
	r.shown = append(r.shown[:0], r.ep.Instruction()...)
	r.phase = live
	if r.outcome != gym.Running {
		r.phase = over
		if r.outcome == gym.Scored {
			r.parts = bits(r.ep.Components())
		}
	}
	v.writeScalars(i, r, 1)
	v.writeObs(i, r, &v.io.Obs, true)
}
