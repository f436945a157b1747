package main

import (
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// requests counts the answered requests of an informer by kind: a refused connection is no list.
type requests struct {
	List      int `json:"list"`
	Watch     int `json:"watch"`
	WatchList int `json:"watchList"`
}

// counts holds the requests of every informer since the last take.
type counts struct {
	mutex    sync.Mutex
	byClient map[string]*requests
}

func newCounts() *counts {
	return &counts{byClient: map[string]*requests{}}
}

// watch returns a copy of the configuration whose requests are counted under this name.
func (c *counts) watch(config *rest.Config, name string) *rest.Config {
	c.byClient[name] = &requests{}
	watched := rest.CopyConfig(config)
	watched.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				c.add(name, request)
			}
			return response, err
		})
	})
	return watched
}

// take returns the counts and resets them.
func (c *counts) take() map[string]requests {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	taken := map[string]requests{}
	for name, counted := range c.byClient {
		taken[name] = *counted
		c.byClient[name] = &requests{}
	}
	return taken
}

func (c *counts) add(name string, request *http.Request) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	counted, query := c.byClient[name], request.URL.Query()
	switch {
	case query.Get("watch") != "true":
		counted.List++
	case query.Get("sendInitialEvents") == "true":
		counted.WatchList++
	default:
		counted.Watch++
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
