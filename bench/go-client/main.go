// Command go-client sends a cache server the requests of kcp's controllers and informers: net/http
// over HTTP/2 or HTTP/1.1, with a client certificate or a bearer token. It measures itself, so that
// one clock times sending and receiving.
//
// The first line of standard input is a job in JSON, the last line of standard output its result in
// JSON. In between, the job stops at steps: it prints {"step":"…"} and waits for a line, while the
// caller reads the server's processor time and memory.
//
//	opening ─▶ opened ─▶ begin ── measured ── end          informers and requests know only begin and end
//
// A request that takes longer than requestTimeout counts as wrong. The result has the number of
// wrong requests and the first reason.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Collects garbage seldom, because the client's collector competes with the server for two cores.
const collectAtPercent = 400

// server is a server that requests go to.
type server struct {
	URL       string `json:"server"`
	Authority string `json:"ca"`
}

type job struct {
	Kind        string   `json:"kind"`
	Server      string   `json:"server"`
	Authority   string   `json:"ca"`
	Certificate string   `json:"cert"`
	Key         string   `json:"key"`
	Token       string   `json:"token"`
	HTTP1       bool     `json:"http1"`
	Gzip        bool     `json:"gzip"`
	Objects     string   `json:"objects"`
	Operation   string   `json:"operation"`
	Resources   []string `json:"resources"`
	From        int      `json:"from"`
	To          int      `json:"to"`
	Paths       []string `json:"paths"`
	PageLimit   int      `json:"pageLimit"`
	Workers     int      `json:"workers"`
	Connections int      `json:"connections"`
	Clients     int      `json:"clients"`
	Silent      int      `json:"silent"`
	PerSecond   int      `json:"perSecond"`
	WarmUpMs    int      `json:"warmUpMs"`
	MeasuredMs  int      `json:"measuredMs"`
	LateMs      int      `json:"lateMs"`
	Watched     *server  `json:"watched"`
}

// Numbers that have no meaning for the job's kind stay 0.
type result struct {
	Operations   int     `json:"operations"`
	ElapsedMs    float64 `json:"elapsedMs"`
	P50Ms        float64 `json:"p50Ms"`
	P99Ms        float64 `json:"p99Ms"`
	Bytes        int64   `json:"bytes"`
	Objects      int     `json:"objects"`
	Protocol     string  `json:"protocol"`
	Wrong        int     `json:"wrong"`
	FirstWrong   string  `json:"firstWrong"`
	ClientBusy   float64 `json:"clientBusy"`
	OpenMs       float64 `json:"openMs"`
	Events       int     `json:"events"`
	EventsMs     float64 `json:"eventsMs"`
	DelayP50Ms   float64 `json:"delayP50Ms"`
	DelayP99Ms   float64 `json:"delayP99Ms"`
	DelayMaxMs   float64 `json:"delayMaxMs"`
	Expected     int     `json:"expected"`
	WatchersLess int     `json:"watchersLess"`
	Unordered    int     `json:"unordered"`
	WatchLists   int     `json:"watchLists"`
	Retried      int     `json:"retried"`
	Details      details `json:"details"`
}

// Delays by kind of operation, because the mixed load has several kinds at once.
type details map[string]delays

var kinds = map[string]func(*dialer, job) (result, error){
	"requests":  requests,
	"informers": informers,
	"watches":   watches,
	"mixed":     mixed,
}

var input = bufio.NewReader(os.Stdin)

func main() {
	debug.SetGCPercent(collectAtPercent)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	line, err := input.ReadBytes('\n')
	if err != nil {
		return err
	}
	var asked job
	if err := json.Unmarshal(line, &asked); err != nil {
		return err
	}
	answer, known := kinds[asked.Kind]
	if !known {
		return fmt.Errorf("no job %q", asked.Kind)
	}
	dial, err := newDialer(asked)
	if err != nil {
		return err
	}
	measured, err := answer(dial, asked)
	if err != nil {
		return err
	}
	measured.Retried = int(dial.retried.Load())
	return json.NewEncoder(os.Stdout).Encode(measured)
}

// step waits until the caller has read the server's figures.
func step(name string) error {
	fmt.Printf("{\"step\":%q}\n", name)
	_, err := input.ReadString('\n')
	return err
}

// faults counts errors and keeps the first.
type faults struct {
	mutex sync.Mutex
	count int
	first string
}

func (f *faults) add(format string, values ...any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.count++
	if f.first == "" {
		f.first = fmt.Sprintf(format, values...)
	}
}

// busySince returns the share of one processor that this process used.
func busySince(began time.Time, before time.Duration) float64 {
	return float64(processorTime()-before) / float64(time.Since(began))
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

type delays struct {
	Count int     `json:"count"`
	P50Ms float64 `json:"p50Ms"`
	P99Ms float64 `json:"p99Ms"`
	MaxMs float64 `json:"maxMs"`
}

// summary sorts its argument.
func summary(measured []time.Duration) delays {
	if len(measured) == 0 {
		return delays{}
	}
	slices.Sort(measured)
	at := func(percent int) float64 {
		return milliseconds(measured[min(len(measured)-1, len(measured)*percent/100)])
	}
	return delays{Count: len(measured), P50Ms: at(50), P99Ms: at(99), MaxMs: milliseconds(measured[len(measured)-1])}
}

func milliseconds(elapsed time.Duration) float64 { return float64(elapsed.Microseconds()) / 1_000 }
