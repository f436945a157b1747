package main

import (
	"errors"
	"sync"
	"time"
)

// watches opens watches, writes objects at a pace or at full speed, and waits until every watch has
// seen every write. An operation is a write. A job without objects and time only opens watches. If
// the job's watches read other objects ("elsewhere"), no write is expected to arrive.
func watches(dial *dialer, asked job) (result, error) {
	writing, err := newWriter(dial, asked)
	if err != nil {
		return result{}, err
	}
	if err := step("opening"); err != nil {
		return result{}, err
	}
	opening := time.Now()
	watching, err := watchDialer(dial, asked)
	if err != nil {
		return result{}, err
	}
	all, err := openWatches(watching, asked)
	if err != nil {
		return result{}, err
	}
	defer all.close()
	opened := time.Since(opening)
	if err := errors.Join(step("opened"), step("begin")); err != nil {
		return result{}, err
	}
	began, before := time.Now(), processorTime()
	written := writing.run(time.Duration(asked.MeasuredMs) * time.Millisecond)
	expected := len(written.latencies)
	if asked.Operation == "elsewhere" {
		expected = 0
	}
	all.await(expected, time.Duration(asked.LateMs)*time.Millisecond)
	busy := busySince(began, before)
	if err := step("end"); err != nil {
		return result{}, err
	}
	all.close()

	measured := result{Operations: len(written.latencies), ElapsedMs: milliseconds(written.elapsed), ClientBusy: busy, OpenMs: milliseconds(opened)}
	latency := summary(written.latencies)
	measured.P50Ms, measured.P99Ms = latency.P50Ms, latency.P99Ms
	measured.Expected = expected
	report(&measured, all, expected, written.sum, began)
	measured.Wrong = all.failed.count + writing.failed.count
	measured.FirstWrong = writing.failed.first + all.failed.first
	measured.Protocol, _ = all.protocol.Load().(string)
	return measured, nil
}

// watchDialer connects to the server of the watches: the one that is written to, unless the job
// names another.
func watchDialer(dial *dialer, asked job) (*dialer, error) {
	if asked.Watched == nil {
		return dial, nil
	}
	asked.Server, asked.Authority = asked.Watched.URL, asked.Watched.Authority
	return newDialer(asked)
}

// report sums up what the readers have seen. EventsMs ends with the last event of the slowest
// reader.
func report(measured *result, all *watching, expected int, sum int64, began time.Time) {
	var seen []time.Duration
	last := began
	for _, one := range all.readers() {
		seen = append(seen, one.delays...)
		measured.Unordered += one.unordered
		if int(one.seen.Load()) != expected || (expected > 0 && one.sum.Load() != sum) {
			measured.WatchersLess++
		}
		if one.last.After(last) {
			last = one.last
		}
	}
	measured.Events = len(seen)
	measured.EventsMs = max(milliseconds(last.Sub(began)), measured.ElapsedMs)
	delay := summary(seen)
	measured.DelayP50Ms, measured.DelayP99Ms, measured.DelayMaxMs = delay.P50Ms, delay.P99Ms, delay.MaxMs
}

type writer struct {
	client    *client
	objects   []*object
	workers   int
	perSecond int
	failed    faults
}

type written struct {
	latencies []time.Duration
	sum       int64
	elapsed   time.Duration
}

// newWriter gets the objects that it will update. It has a connection of its own.
func newWriter(dial *dialer, asked job) (*writer, error) {
	writing := &writer{client: dial.client(), workers: asked.Workers, perSecond: asked.PerSecond}
	if asked.MeasuredMs == 0 || asked.From == asked.To {
		return writing, nil
	}
	objects, err := readObjects(asked)
	if err != nil {
		return nil, err
	}
	writing.objects = objects
	return writing, learnAll(writing.client, objects)
}

func (w *writer) run(duration time.Duration) written {
	began := time.Now()
	var done written
	switch {
	case len(w.objects) == 0:
		time.Sleep(duration)
	case w.perSecond > 0:
		done = w.paced(duration)
	default:
		done = w.atFullSpeed(duration)
	}
	done.elapsed = time.Since(began)
	return done
}

// paced sends each write when it is due, even if the last has no answer yet. A write waits for an
// unanswered write of the same object; that delay counts, because the write is marked with the time
// at which it was due.
func (w *writer) paced(duration time.Duration) written {
	var done written
	var mutex sync.Mutex
	var running sync.WaitGroup
	began := time.Now()
	for count := 0; ; count++ {
		due := began.Add(time.Duration(count) * time.Second / time.Duration(w.perSecond))
		if due.Sub(began) >= duration {
			break
		}
		time.Sleep(time.Until(due))
		running.Go(func() {
			mark := int64(due.Sub(processBegan))
			object := w.objects[count%len(w.objects)]
			object.writing.Lock()
			defer object.writing.Unlock()
			if _, err := object.update(w.client, mark); err != nil {
				w.failed.add("%v", err)
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			done.latencies = append(done.latencies, time.Since(due))
			done.sum += mark
		})
	}
	running.Wait()
	return done
}

func (w *writer) atFullSpeed(duration time.Duration) written {
	var done written
	var mutex sync.Mutex
	var running sync.WaitGroup
	began := time.Now()
	for worker := range w.workers {
		running.Go(func() {
			var latencies []time.Duration
			var sum int64
			for at := worker; time.Since(began) < duration; at += w.workers {
				if at >= len(w.objects) {
					at = worker
				}
				sent := time.Now()
				mark := int64(sent.Sub(processBegan))
				if _, err := w.objects[at].update(w.client, mark); err != nil {
					w.failed.add("%v", err)
					break
				}
				latencies = append(latencies, time.Since(sent))
				sum += mark
			}
			mutex.Lock()
			defer mutex.Unlock()
			done.latencies = append(done.latencies, latencies...)
			done.sum += sum
		})
	}
	running.Wait()
	return done
}
