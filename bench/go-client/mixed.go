package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	getsPerSecond    = 200
	listsEvery       = 2 * time.Second
	informersEvery   = 5 * time.Second
	mixedWatchesPath = 0
)

// mixed is what a cache of a few shards gets all day: watches, steady updates, gets, occasional
// lists of a logical cluster or a type, and informers that start. Watches and informers read the
// first path; lists read all paths in turn. An operation is a request or an event.
func mixed(dial *dialer, asked job) (result, error) {
	writing, err := newWriter(dial, asked)
	if err != nil {
		return result{}, err
	}
	watchJob := asked
	watchJob.Paths = asked.Paths[mixedWatchesPath : mixedWatchesPath+1]
	all, err := openWatches(dial, watchJob)
	if err != nil {
		return result{}, err
	}
	defer all.close()
	if err := step("begin"); err != nil {
		return result{}, err
	}
	began, before := time.Now(), processorTime()
	duration := time.Duration(asked.MeasuredMs) * time.Millisecond
	readers := &timed{dial: dial, took: map[string][]time.Duration{}}
	readers.every("get", time.Second/getsPerSecond, duration, func(c *client, count int) error {
		object := writing.objects[count*7%len(writing.objects)]
		_, err := c.ask(http.MethodGet, object.url(), nil, func([]byte) error { return nil })
		return err
	})
	lists := list(asked.Paths)
	readers.every("list", listsEvery, duration, func(c *client, count int) error {
		_, _, objects, err := lists(c, 0, count)
		if err == nil && objects == 0 {
			return fmt.Errorf("an empty list of %s", asked.Paths[count%len(asked.Paths)])
		}
		return err
	})
	readers.every("informer", informersEvery, duration, func(_ *client, count int) error {
		c := dial.client()
		defer c.close()
		_, err := inform(c, asked.Paths[mixedWatchesPath])
		return err
	})
	written := writing.run(duration)
	readers.running.Wait()
	all.await(len(written.latencies), time.Duration(asked.LateMs)*time.Millisecond)
	measured := result{ElapsedMs: milliseconds(time.Since(began)), ClientBusy: busySince(began, before), Expected: len(written.latencies)}
	if err := step("end"); err != nil {
		return result{}, err
	}
	all.close()
	report(&measured, all, len(written.latencies), written.sum, began)
	measured.Details = details{"update": summary(written.latencies)}
	measured.Operations = measured.Events + len(written.latencies)
	for kind, took := range readers.took {
		measured.Operations += len(took)
		measured.Details[kind] = summary(took)
	}
	measured.Wrong = all.failed.count + writing.failed.count + readers.failed.count
	if measured.Wrong > 0 {
		measured.FirstWrong = errors.Join(errors.New(writing.failed.first), errors.New(all.failed.first), errors.New(readers.failed.first)).Error()
	}
	measured.Protocol, _ = all.protocol.Load().(string)
	return measured, nil
}

// timed runs readers of several kinds, each when it is due, and records how long each took.
type timed struct {
	dial    *dialer
	running sync.WaitGroup
	failed  faults
	mutex   sync.Mutex
	took    map[string][]time.Duration
}

func (t *timed) every(kind string, interval, duration time.Duration, one func(c *client, count int) error) {
	c := t.dial.client()
	t.running.Go(func() {
		began := time.Now()
		for count := 0; time.Duration(count)*interval < duration; count++ {
			due := began.Add(time.Duration(count) * interval)
			time.Sleep(time.Until(due))
			t.running.Go(func() {
				if err := one(c, count); err != nil {
					t.failed.add("%v", err)
				}
				t.mutex.Lock()
				defer t.mutex.Unlock()
				t.took[kind] = append(t.took[kind], time.Since(due))
			})
		}
	})
}
