package main

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const objectsPerRound = 4

// writer writes to three places, round after round: some objects stay, some change, some are
// deleted. Names are unique over all places, because the keys of client-go's informers have neither
// shard nor cluster.
type writer struct {
	places []destination
	round  int
}

type destination struct {
	shard, cluster string
	typed          kubernetes.Interface
	dynamic        dynamic.Interface
}

// newWriter makes clients that write JSON, because a cache server need not read protobuf.
func newWriter(configFor func(path string) *rest.Config) (*writer, error) {
	w := &writer{}
	for _, at := range [][2]string{{"amber", "acme"}, {"birch", "acme"}, {"cedar", "beta"}} {
		config := configFor(fmt.Sprintf(place, at[0], at[1]))
		config.ContentType = "application/json"
		typed, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		dynamic, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		w.places = append(w.places, destination{shard: at[0], cluster: at[1], typed: typed, dynamic: dynamic})
	}
	return w, nil
}

func (w *writer) write(ctx context.Context) error {
	w.round++
	for _, at := range w.places {
		for number := range objectsPerRound {
			name := fmt.Sprintf("%s-%s-%d-%d", at.shard, at.cluster, w.round, number)
			if err := at.create(ctx, name); err != nil {
				return fmt.Errorf("create %s: %w", name, err)
			}
		}
		changed := fmt.Sprintf("%s-%s-%d-1", at.shard, at.cluster, w.round)
		if err := at.change(ctx, changed); err != nil {
			return fmt.Errorf("change %s: %w", changed, err)
		}
		// An object of this round, and one of the round before.
		for _, gone := range []string{fmt.Sprintf("%s-%s-%d-0", at.shard, at.cluster, w.round), fmt.Sprintf("%s-%s-%d-2", at.shard, at.cluster, w.round-1)} {
			if w.round == 1 && gone == fmt.Sprintf("%s-%s-0-2", at.shard, at.cluster) {
				continue
			}
			if err := at.remove(ctx, gone); err != nil {
				return fmt.Errorf("remove %s: %w", gone, err)
			}
		}
	}
	return nil
}

func (d destination) create(ctx context.Context, name string) error {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"get"}}}
	if _, err := d.typed.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		return err
	}
	reference := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "reader"}
	if _, err := d.typed.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: reference}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := d.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for resource, kind := range map[schema.GroupVersionResource]string{apiExports: "APIExport", shards: "Shard"} {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"n": int64(1)}}}
		object.SetAPIVersion(resource.GroupVersion().String())
		object.SetKind(kind)
		if _, err := d.dynamic.Resource(resource).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (d destination) change(ctx context.Context, name string) error {
	role, err := d.typed.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	role.Labels = map[string]string{"tier": "gold"}
	if _, err := d.typed.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{}); err != nil {
		return err
	}
	export, err := d.dynamic.Resource(apiExports).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(export.Object, int64(2), "spec", "n"); err != nil {
		return err
	}
	_, err = d.dynamic.Resource(apiExports).Update(ctx, export, metav1.UpdateOptions{})
	return err
}

func (d destination) remove(ctx context.Context, name string) error {
	for _, resource := range []schema.GroupVersionResource{clusterRoles, webhooks, apiExports, shards} {
		if err := d.dynamic.Resource(resource).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return d.dynamic.Resource(roleBindings).Namespace("default").Delete(ctx, name, metav1.DeleteOptions{})
}
