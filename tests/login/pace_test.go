package htpasswd

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// guess is one attempt; it tells how long it waited for its turn, in the time of the bubble, which nobody measures.
func guess(t *testing.T, p *pace, name string, right bool) time.Duration {
	t.Helper()
	from := time.Now()
	done, err := p.begin(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	done(right)
	return time.Since(from)
}

func TestEveryWrongPasswordDoublesTheTimeUntilTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		for number, wanted := range []time.Duration{0, 500, 1000, 2000, 4000, 8000, 8000, 8000} {
			if waited := guess(t, p, "alice", false); waited != wanted*time.Millisecond {
				t.Errorf("guess %d waited %v, not %v ms", number+1, waited, int64(wanted))
			}
		}
		if waited := guess(t, p, "carol", true); waited != 0 {
			t.Errorf("somebody else waited %v", waited)
		}
	})
}

func TestTheRightPasswordWaitsOnceAndEndsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		for range 4 {
			guess(t, p, "alice", false)
		}
		if waited := guess(t, p, "alice", true); waited != 4*time.Second {
			t.Errorf("it waited %v", waited)
		}
		if waited := guess(t, p, "alice", true); waited != 0 {
			t.Errorf("the next one waited %v", waited)
		}
		if len(p.names) != 0 {
			t.Errorf("%d names are still kept", len(p.names))
		}
	})
}

func TestManyAtOnceAreNotFasterThanOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The first one has its turn at once, so that one more than may wait can begin.
		const all = inLine + 1
		p, ended := newPace(), make(chan time.Time, all)
		from := time.Now()
		for range all {
			go func() {
				guess(t, p, "alice", false)
				ended <- time.Now()
			}()
		}
		synctest.Wait()
		if _, err := p.begin(context.Background(), "alice"); err == nil {
			t.Error("one more than may wait is not refused")
		}
		if waited := guess(t, p, "carol", true); waited != 0 {
			t.Errorf("somebody else waited %v", waited)
		}
		var last time.Time
		for range all {
			last = <-ended
		}
		// 0.5, 1, 2, 4 and then 8 seconds after each other.
		if took := last.Sub(from); took < time.Duration(all-6)*lastPause {
			t.Errorf("%d guesses took %v only", all, took)
		}
	})
}

func TestWhoGivesUpLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		for range 6 {
			guess(t, p, "alice", false)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := p.begin(ctx, "alice"); err == nil {
			t.Fatal("it did not wait")
		}
		if waiting := p.names["alice"].waiting; waiting != 0 {
			t.Errorf("%d are still in the line", waiting)
		}
	})
}

func TestWrongPasswordsAreForgottenAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		for range 6 {
			guess(t, p, "alice", false)
		}
		time.Sleep(memory + lastPause + time.Second)
		guess(t, p, "alice", false)
		if waited := guess(t, p, "alice", false); waited != firstPause {
			t.Errorf("it waited %v", waited)
		}
	})
}

func TestNamesThatNobodyHasDoNotFillTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		for number := range mostNames + 100 {
			guess(t, p, fmt.Sprint("nobody", number), false)
		}
		if kept := len(p.names); kept > mostNames+1 {
			t.Errorf("%d names are kept", kept)
		}
	})
}
