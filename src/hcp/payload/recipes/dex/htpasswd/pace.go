package htpasswd

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	firstPause = 500 * time.Millisecond
	// Whoever knows the right password waits this long at most for everyone who guesses, times those in the line.
	lastPause = 8 * time.Second
	// Guesses for one name that may wait at the same time; more are refused without a look.
	inLine = 16
	// Wrong passwords are forgotten after this time.
	memory = 15 * time.Minute
	// Names that are kept in mind; guesses for more of them share one line.
	mostNames = 10_000
)

var errLong = errors.New("too many attempts are waiting")

// pace slows down guessing: every wrong password of a name doubles the time until the next one is looked at.
type pace struct {
	mutex sync.Mutex
	names map[string]*line
	now   func() time.Time
}

type line struct {
	wrong   int
	waiting int
	// When the next attempt may be looked at.
	free time.Time
}

func newPace() *pace {
	return &pace{names: map[string]*line{}, now: time.Now}
}

// begin waits for the turn of an attempt; what it returns is told how the attempt ended.
func (p *pace) begin(ctx context.Context, name string) (func(right bool), error) {
	p.mutex.Lock()
	now := p.now()
	name, mine := p.of(name, now)
	if mine.waiting >= inLine {
		p.mutex.Unlock()
		return nil, errLong
	}
	turn := mine.free
	if turn.Before(now) {
		turn = now
	}
	mine.waiting++
	// Those that are under way count as wrong ones: many at once must not be faster than one after the other.
	mine.free = turn.Add(pause(mine.wrong + mine.waiting - 1))
	p.mutex.Unlock()

	timer := time.NewTimer(turn.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		p.mutex.Lock()
		mine.waiting--
		p.mutex.Unlock()
		return nil, ctx.Err()
	}
	return func(right bool) { p.end(name, mine, right) }, nil
}

func (p *pace) end(name string, mine *line, right bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	mine.waiting--
	if right {
		mine.wrong, mine.free = 0, time.Time{}
		if mine.waiting == 0 {
			delete(p.names, name)
		}
		return
	}
	mine.wrong++
	if next := p.now().Add(pause(mine.wrong)); next.After(mine.free) {
		mine.free = next
	}
}

func (p *pace) of(name string, now time.Time) (string, *line) {
	if found, ok := p.names[name]; ok {
		if found.waiting == 0 && now.Sub(found.free) > memory {
			*found = line{}
		}
		return name, found
	}
	if len(p.names) >= mostNames {
		for other, one := range p.names {
			if one.waiting == 0 && now.Sub(one.free) > memory {
				delete(p.names, other)
			}
		}
	}
	if len(p.names) >= mostNames {
		name = ""
		if found, ok := p.names[name]; ok {
			return name, found
		}
	}
	made := &line{}
	p.names[name] = made
	return name, made
}

func pause(wrong int) time.Duration {
	if wrong <= 0 {
		return 0
	}
	if wrong > 5 {
		return lastPause
	}
	return min(firstPause<<(wrong-1), lastPause)
}
