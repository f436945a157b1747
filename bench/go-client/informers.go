package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	informerQuery   = "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=600"
	informerBytes   = 64 << 10
	addedLine       = `{"type":"ADDED"`
	bookmarkLine    = `{"type":"BOOKMARK"`
	initialsEndMark = `"k8s.io/initial-events-end":"true"`
)

// informers starts all informers at once, each on a connection of its own, as separate processes
// would; the handshake counts. Informer i reads path i of the list of paths, which repeats. An
// operation is an object that arrived. A server without WatchList gets a list request instead.
func informers(dial *dialer, asked job) (result, error) {
	if err := step("begin"); err != nil {
		return result{}, err
	}
	measured := result{}
	var failed faults
	var mutex sync.Mutex
	var latencies []time.Duration
	var running sync.WaitGroup
	began, before := time.Now(), processorTime()
	for each := range asked.Clients {
		running.Go(func() {
			c := dial.client()
			defer c.close()
			started := time.Now()
			one, err := inform(c, asked.Paths[each%len(asked.Paths)])
			if err != nil {
				failed.add("%v", err)
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			latencies = append(latencies, time.Since(started))
			measured.Objects += one.objects
			measured.Bytes += int64(one.bytes)
			measured.Protocol = one.protocol
			if one.watchList {
				measured.WatchLists++
			}
		})
	}
	running.Wait()
	measured.ElapsedMs = milliseconds(time.Since(began))
	measured.ClientBusy = busySince(began, before)
	if err := step("end"); err != nil {
		return result{}, err
	}
	measured.Operations = measured.Objects
	delay := summary(latencies)
	measured.P50Ms, measured.P99Ms = delay.P50Ms, delay.P99Ms
	measured.Wrong, measured.FirstWrong = failed.count, failed.first
	return measured, nil
}

type informed struct {
	objects   int
	bytes     int
	protocol  string
	watchList bool
}

var errInitialsEnd = errors.New("the initial events are complete")

func inform(c *client, path string) (informed, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	response, err := c.open(ctx, http.MethodGet, path+informerQuery, nil)
	var refused *refusal
	if errors.As(err, &refused) && (refused.status == http.StatusUnprocessableEntity || refused.status == http.StatusBadRequest) {
		return informByList(c, path)
	}
	if err != nil {
		return informed{}, err
	}
	defer response.Body.Close()
	one := informed{protocol: response.Proto, watchList: true}
	seen := make(map[string]struct{})
	err = readLines(response.Body, informerBytes, func(line []byte) error {
		one.bytes += len(line)
		switch {
		case bytes.HasPrefix(line, []byte(addedLine)):
			if name := textBehind(line, nameMark); name != nil {
				one.objects++
				seen[string(name)] = struct{}{}
			}
		case !bytes.HasPrefix(line, []byte(bookmarkLine)):
			return fmt.Errorf("among initial events: %.200s", line)
		case bytes.Contains(line, []byte(initialsEndMark)):
			return errInitialsEnd
		}
		return nil
	})
	switch {
	case !errors.Is(err, errInitialsEnd):
		return one, fmt.Errorf("a WatchList ended without its bookmark, after %d events: %w", one.objects, err)
	case len(seen) != one.objects:
		return one, fmt.Errorf("%d events of %d objects", one.objects, len(seen))
	}
	return one, nil
}

func informByList(c *client, path string) (informed, error) {
	one := informed{}
	protocol, err := c.ask(http.MethodGet, path+"?resourceVersion=0", nil, func(answer []byte) error {
		one.objects, one.bytes = bytes.Count(answer, nameMark), len(answer)
		return nil
	})
	one.protocol = protocol
	return one, err
}

// readLines passes each line to `take` until that returns an error, and returns the error. The line
// is valid only during the call.
func readLines(from io.Reader, bufferBytes int, take func(line []byte) error) error {
	lines := bufio.NewReaderSize(from, bufferBytes)
	var long []byte
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, line...); len(long) > lineBytesMax {
				return errors.New("a line is too long")
			}
			continue
		}
		if err != nil {
			return err
		}
		if len(long) > 0 {
			line = append(long, line...)
			long = long[:0]
		}
		if err := take(line); err != nil {
			return err
		}
	}
}
