package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// operation does one request for a worker; objects is how many arrived.
type operation func(c *client, worker, count int) (protocol string, bytes, objects int, err error)

// requests repeats one operation with several workers: a warm-up, if the job has one, then the
// measured time. Creates and deletes end when every object has had its turn; their jobs have no
// warm-up, because it would use up the objects.
func requests(dial *dialer, asked job) (result, error) {
	clients := dial.clients(asked.Connections)
	once := asked.Operation == "create" || asked.Operation == "delete"
	one, count, err := prepare(asked, clients[0])
	if err != nil {
		return result{}, err
	}
	run := func(duration time.Duration) (result, []time.Duration) {
		return repeat(clients, asked.Workers, duration, once, count, one)
	}
	if asked.WarmUpMs > 0 {
		if warm, _ := run(time.Duration(asked.WarmUpMs) * time.Millisecond); warm.Wrong > 0 {
			return warm, nil
		}
	}
	if err := step("begin"); err != nil {
		return result{}, err
	}
	measured, latencies := run(time.Duration(asked.MeasuredMs) * time.Millisecond)
	if err := step("end"); err != nil {
		return result{}, err
	}
	delay := summary(latencies)
	measured.P50Ms, measured.P99Ms = delay.P50Ms, delay.P99Ms
	return measured, nil
}

// prepare returns the operation and, for one that is done once for each object, the number of
// objects.
func prepare(asked job, c *client) (operation, int, error) {
	switch asked.Operation {
	case "list":
		return list(asked.Paths), 0, nil
	case "page":
		return page(asked.Paths, asked.PageLimit), 0, nil
	}
	objects, err := readObjects(asked)
	if err != nil {
		return nil, 0, err
	}
	workers := asked.Workers
	own := func(worker, count int) *object { return objects[(worker+count*workers)%len(objects)] }
	switch asked.Operation {
	case "get":
		return func(c *client, worker, count int) (string, int, int, error) {
			object := own(worker, count)
			protocol, err := c.ask(http.MethodGet, object.url(), nil, func(answer []byte) error {
				if !bytes.Contains(answer, []byte(object.name)) {
					return fmt.Errorf("GET %s: another object: %.200s", object.url(), answer)
				}
				return nil
			})
			return protocol, 0, 1, err
		}, 0, nil
	case "update":
		if len(objects) < workers {
			return nil, 0, fmt.Errorf("%d objects for %d workers", len(objects), workers)
		}
		// Each worker has objects of its own.
		objects = objects[:len(objects)/workers*workers]
		return func(c *client, worker, count int) (string, int, int, error) {
			protocol, err := own(worker, count).update(c, clock())
			return protocol, 0, 1, err
		}, 0, learnAll(c, objects)
	case "create":
		return func(c *client, worker, count int) (string, int, int, error) {
			protocol, err := objects[count].create(c)
			return protocol, len(objects[count].text), 1, err
		}, len(objects), nil
	case "delete":
		return func(c *client, worker, count int) (string, int, int, error) {
			protocol, err := objects[count].delete(c)
			return protocol, 0, 1, err
		}, len(objects), nil
	default:
		return nil, 0, fmt.Errorf("no operation %q", asked.Operation)
	}
}

// list counts names as they arrive, because a list may be larger than memory.
func list(paths []string) operation {
	return func(c *client, worker, count int) (string, int, int, error) {
		return c.count(paths[(worker+count)%len(paths)])
	}
}

// page reads page after page to the end of the collection, and then starts over. Each worker has a
// list of its own.
func page(paths []string, limit int) operation {
	var continues sync.Map
	return func(c *client, worker, _ int) (string, int, int, error) {
		path := paths[worker%len(paths)] + "?limit=" + strconv.Itoa(limit)
		if before, running := continues.Load(worker); running && before != "" {
			path += "&continue=" + url.QueryEscape(before.(string))
		}
		var bytesRead, objects int
		protocol, err := c.ask(http.MethodGet, path, nil, func(answer []byte) error {
			continues.Store(worker, string(textBehind(answer, []byte(`"continue":"`))))
			bytesRead, objects = len(answer), bytes.Count(answer, nameMark)
			return nil
		})
		return protocol, bytesRead, objects, err
	}
}

func repeat(clients []*client, workers int, duration time.Duration, once bool, count int, one operation) (result, []time.Duration) {
	measured := result{}
	latencies := make([][]time.Duration, workers)
	var failed faults
	var next, read, objects atomic.Int64
	var protocol atomic.Value
	var running sync.WaitGroup
	began, before := time.Now(), processorTime()
	for worker := range workers {
		running.Go(func() {
			for done := 0; ; done++ {
				turn := done
				if once {
					turn = int(next.Add(1)) - 1
				}
				if (once && turn >= count) || (!once && time.Since(began) >= duration) {
					return
				}
				sent := time.Now()
				over, bytes, came, err := one(clients[worker%len(clients)], worker, turn)
				latencies[worker] = append(latencies[worker], time.Since(sent))
				if err != nil {
					failed.add("%v", err)
					return
				}
				read.Add(int64(bytes))
				objects.Add(int64(came))
				protocol.Store(over)
			}
		})
	}
	running.Wait()
	measured.ElapsedMs = milliseconds(time.Since(began))
	measured.ClientBusy = busySince(began, before)
	var all []time.Duration
	for _, some := range latencies {
		all = append(all, some...)
	}
	measured.Operations = len(all)
	measured.Bytes, measured.Objects = read.Load(), int(objects.Load())
	measured.Wrong, measured.FirstWrong = failed.count, failed.first
	measured.Protocol, _ = protocol.Load().(string)
	return measured, all
}
