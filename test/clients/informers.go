package main

import (
	"context"
	"fmt"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	syncWithin    = 30 * time.Second
	compareWithin = 45 * time.Second
	compareEvery  = 100 * time.Millisecond
)

var (
	clusterRoles  = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	roleBindings  = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	webhooks      = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	apiExports    = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha2", Resource: "apiexports"}
	oldAPIExports = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha1", Resource: "apiexports"}
	shards        = schema.GroupVersionResource{Group: "core.kcp.io", Version: "v1alpha1", Resource: "shards"}
)

// informer is one informer and a function that lists what it should hold.
type informer struct {
	name   string
	store  cache.Store
	synced cache.InformerSynced
	list   func(context.Context) (map[string]string, error)
}

// comparison describes one informer's store. Differences are named by key.
type comparison struct {
	Name        string   `json:"name"`
	Objects     int      `json:"objects"`
	Differences []string `json:"differences"`
}

// startInformers starts every informer and waits until all have synced. Each has a client of its
// own, so that its requests can be counted.
func startInformers(ctx context.Context, config *rest.Config, counts *counts, seen *delays) ([]informer, error) {
	plain, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var all []informer
	add := func(kind string, resource schema.GroupVersionResource, build func(*rest.Config) (cache.SharedIndexInformer, error)) error {
		name := fmt.Sprintf("%s %s/%s", kind, resource.Resource, resource.Version)
		made, err := build(counts.watch(config, name))
		if err != nil {
			return err
		}
		if err := seen.follow(name, made); err != nil {
			return err
		}
		go made.RunWithContext(ctx)
		all = append(all, informer{name: name, store: made.GetStore(), synced: made.HasSynced, list: listKeys(plain.Resource(resource))})
		return nil
	}

	for _, resource := range []schema.GroupVersionResource{clusterRoles, roleBindings, webhooks} {
		if err := add("typed", resource, func(config *rest.Config) (cache.SharedIndexInformer, error) {
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return nil, err
			}
			generic, err := informers.NewSharedInformerFactory(client, 0).ForResource(resource)
			if err != nil {
				return nil, err
			}
			return generic.Informer(), nil
		}); err != nil {
			return nil, err
		}
	}
	for _, resource := range []schema.GroupVersionResource{apiExports, oldAPIExports, shards, clusterRoles} {
		if err := add("dynamic", resource, func(config *rest.Config) (cache.SharedIndexInformer, error) {
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				return nil, err
			}
			return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(resource).Informer(), nil
		}); err != nil {
			return nil, err
		}
	}
	for _, resource := range []schema.GroupVersionResource{apiExports, roleBindings} {
		if err := add("metadata", resource, func(config *rest.Config) (cache.SharedIndexInformer, error) {
			client, err := metadata.NewForConfig(config)
			if err != nil {
				return nil, err
			}
			return metadatainformer.NewSharedInformerFactory(client, 0).ForResource(resource).Informer(), nil
		}); err != nil {
			return nil, err
		}
	}

	within, cancel := context.WithTimeout(ctx, syncWithin)
	defer cancel()
	for _, each := range all {
		if !cache.WaitForCacheSync(within.Done(), each.synced) {
			return nil, fmt.Errorf("%s did not sync within %s", each.name, syncWithin)
		}
	}
	return all, nil
}

// compare waits until every store holds what the server lists, key by key at the same
// resourceVersion, or until time is up.
func compare(ctx context.Context, informers []informer) []comparison {
	deadline := time.Now().Add(compareWithin)
	var out []comparison
	for _, each := range informers {
		result := comparison{Name: each.name}
		for {
			result.Objects, result.Differences = difference(ctx, each)
			if len(result.Differences) == 0 || time.Now().After(deadline) {
				break
			}
			time.Sleep(compareEvery)
		}
		out = append(out, result)
	}
	return out
}

func difference(ctx context.Context, each informer) (int, []string) {
	differences := []string{}
	want, err := each.list(ctx)
	if err != nil {
		return 0, []string{err.Error()}
	}
	got := map[string]string{}
	for _, object := range each.store.List() {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return 0, []string{err.Error()}
		}
		got[accessor.GetNamespace()+"/"+accessor.GetName()] = accessor.GetResourceVersion()
	}
	for key, version := range want {
		if got[key] != version {
			differences = append(differences, fmt.Sprintf("%s: the server has %s, the store %q", key, version, got[key]))
		}
	}
	for key := range got {
		if _, known := want[key]; !known {
			differences = append(differences, key+": only in the store")
		}
	}
	sort.Strings(differences)
	return len(want), differences
}

// listKeys lists all objects of a type, page by page, as a map from key to resourceVersion.
func listKeys(resource dynamic.NamespaceableResourceInterface) func(context.Context) (map[string]string, error) {
	return func(ctx context.Context) (map[string]string, error) {
		found := map[string]string{}
		options := metav1.ListOptions{Limit: 7}
		for {
			page, err := resource.List(ctx, options)
			if err != nil {
				return nil, err
			}
			for _, item := range page.Items {
				found[item.GetNamespace()+"/"+item.GetName()] = item.GetResourceVersion()
			}
			if options.Continue = page.GetContinue(); options.Continue == "" {
				return found, nil
			}
		}
	}
}
