/**
 * Cases for each alert of the chart: series that fire it, and series beside its threshold that do
 * not. A series has a metric's name and the labels of a scrape. Prometheus adds `instance` and
 * `job`; if a case does not give them, they are those of `prometheusAdds`.
 *
 * Values are in promtool's notation, a minute apart from minute 0 on: `0x5 1x9` is six zeros and
 * ten ones. https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/
 */
export type AlertCase = Readonly<{
  alert: string;
  what: string;
  series: Readonly<Record<string, string>>;
  /** Missing if the alert must not fire within two hours. */
  fires?: Readonly<{
    /** The first minute in which the alert fires. */
    from: number;
    /** The first minute in which it fires no longer, if the case checks that. */
    until?: number;
    /** Labels besides the severity. */
    labels: Readonly<Record<string, string>>;
    value?: number;
  }>;
}>;

export const prometheusAdds = { instance: 'one', job: 'strata' } as const;

const slice = 'shard="amber",type="roles.rbac.authorization.k8s.io"';
const sliceLabels = { shard: 'amber', type: 'roles.rbac.authorization.k8s.io' };
const ofTwo = (values: readonly [string, string]): Readonly<Record<string, string>> => ({
  [`strata_slice_whole{${slice},instance="one",pod="one"}`]: values[0],
  [`strata_slice_whole{${slice},instance="two",pod="two"}`]: values[1],
  'strata_other_servers{instance="one",pod="one"}': '1x120',
  'strata_other_servers{instance="two",pod="two"}': '1x120',
});
const weekSeconds = 7 * 86_400;

export const alertCases: readonly AlertCase[] = [
  { alert: 'StrataDown', what: 'no answer', series: { up: '0x9' }, fires: { from: 2, labels: prometheusAdds } },
  { alert: 'StrataDown', what: 'no answer for two scrapes', series: { up: '0x1 1x9' } },
  { alert: 'StrataDown', what: 'another job', series: { 'up{job="other"}': '0x9' } },

  { alert: 'StrataNotReady', what: 'not ready', series: { strata_ready: '0x9' }, fires: { from: 5, labels: prometheusAdds } },
  { alert: 'StrataNotReady', what: 'not ready for four minutes', series: { strata_ready: '0x4 1x9' } },

  { alert: 'StrataStoreFailing', what: 'failing', series: { strata_store_failing: '1x9' }, fires: { from: 1, labels: prometheusAdds } },
  { alert: 'StrataStoreFailing', what: 'failing in one scrape', series: { strata_store_failing: '1 0x9' } },

  {
    alert: 'StrataDiskFills',
    what: 'less than a tenth is left',
    series: { 'strata_disk_available_bytes{folder="data"}': '99x9', 'strata_disk_size_bytes{folder="data"}': '1000x9' },
    fires: { from: 5, labels: { ...prometheusAdds, folder: 'data' } },
  },
  {
    alert: 'StrataDiskFills',
    what: 'a tenth is left',
    series: { 'strata_disk_available_bytes{folder="data"}': '100x9', 'strata_disk_size_bytes{folder="data"}': '1000x9' },
  },

  {
    alert: 'StrataShardAway',
    what: 'nobody pushes',
    series: { 'strata_shard_connected{shard="amber"}': '0x9' },
    fires: { from: 5, labels: { ...prometheusAdds, shard: 'amber' } },
  },
  { alert: 'StrataShardAway', what: 'nobody pushes for four minutes', series: { 'strata_shard_connected{shard="amber"}': '0x4 1x9' } },

  {
    alert: 'StrataLinkDown',
    what: 'down',
    series: { 'strata_link_connected{neighbour="parent"}': '0x9' },
    fires: { from: 5, labels: { ...prometheusAdds, neighbour: 'parent' } },
  },
  { alert: 'StrataLinkDown', what: 'down for four minutes', series: { 'strata_link_connected{neighbour="parent"}': '0x4 1x9' } },

  {
    alert: 'StrataSliceNotWhole',
    what: 'not whole at the only server',
    series: { [`strata_slice_whole{${slice}}`]: '0x30', strata_other_servers: '0x30' },
    fires: { from: 15, labels: { ...prometheusAdds, ...sliceLabels } },
  },
  {
    alert: 'StrataSliceNotWhole',
    what: 'not whole at the only server for fourteen minutes',
    series: { [`strata_slice_whole{${slice}}`]: '0x14 1x30', strata_other_servers: '0x60' },
  },
  {
    alert: 'StrataSliceNotWhole',
    what: 'not whole at any of two servers of one etcd',
    series: ofTwo(['0x30', '0x30']),
    fires: { from: 15, labels: { job: 'strata', ...sliceLabels } },
  },
  { alert: 'StrataSliceNotWhole', what: 'not whole at the server without the pusher', series: ofTwo(['1x120', '0x120']) },

  {
    alert: 'StrataRemovalHeld',
    what: 'three objects',
    series: { [`strata_slice_held_objects{${slice}}`]: '0 3x9' },
    fires: { from: 1, labels: { ...prometheusAdds, ...sliceLabels }, value: 3 },
  },
  { alert: 'StrataRemovalHeld', what: 'none', series: { [`strata_slice_held_objects{${slice}}`]: '0x9' } },

  ...counted('StrataDigestDifference', 'strata_link_digest_differences_total'),

  {
    alert: 'StrataCertificateExpires',
    what: 'within a week',
    series: { 'strata_certificate_expires_seconds{use="serving"}': `${weekSeconds + 300}x20` },
    fires: { from: 6, labels: { ...prometheusAdds, use: 'serving' } },
  },
  {
    alert: 'StrataCertificateExpires',
    what: 'in a week',
    series: { 'strata_certificate_expires_seconds{use="serving"}': `${weekSeconds}+60x120` },
  },

  {
    alert: 'StrataLimitReached',
    what: 'refused for ten minutes, callers of both kinds',
    series: {
      'strata_limits_reached_total{limit="requests",caller="anonymous"}': '0+1x20',
      'strata_limits_reached_total{limit="requests",caller="client"}': '0x20',
    },
    fires: { from: 11, labels: { instance: prometheusAdds.instance, limit: 'requests' } },
  },
  {
    alert: 'StrataLimitReached',
    what: 'one refusal',
    series: { 'strata_limits_reached_total{limit="requests",caller="anonymous"}': '0x5 1x120' },
  },

  {
    alert: 'StrataLate',
    what: 'more than half a second',
    series: { strata_event_loop_delay_max_seconds: '0.51x9' },
    fires: { from: 5, labels: prometheusAdds },
  },
  { alert: 'StrataLate', what: 'half a second', series: { strata_event_loop_delay_max_seconds: '0.5x9' } },

  {
    alert: 'StrataErrors',
    what: 'one',
    series: { 'strata_refusals_total{reason="InternalError"}': '0x3 1x20' },
    fires: { from: 4, until: 8, labels: { instance: prometheusAdds.instance } },
  },
  {
    alert: 'StrataErrors',
    what: 'none any more, and what is refused for another reason',
    series: { 'strata_refusals_total{reason="InternalError"}': '7x20', 'strata_refusals_total{reason="NotFound"}': '0+9x20' },
  },

  {
    alert: 'StrataAgentShardUnreachable',
    what: 'no answer',
    series: { strata_agent_shard_reachable: '0x9' },
    fires: { from: 5, labels: prometheusAdds },
  },
  { alert: 'StrataAgentShardUnreachable', what: 'no answer for four minutes', series: { strata_agent_shard_reachable: '0x4 1x9' } },

  {
    alert: 'StrataAgentCacheUnreachable',
    what: 'no cache',
    series: { strata_agent_cache_reachable: '0x9' },
    fires: { from: 5, labels: prometheusAdds },
  },
  { alert: 'StrataAgentCacheUnreachable', what: 'no cache for four minutes', series: { strata_agent_cache_reachable: '0x4 1x9' } },

  {
    alert: 'StrataAgentBehind',
    what: 'more than a minute behind',
    series: { strata_agent_lag_seconds: '61+60x9' },
    fires: { from: 5, labels: prometheusAdds },
  },
  { alert: 'StrataAgentBehind', what: 'a minute behind', series: { strata_agent_lag_seconds: '60x20' } },

  ...counted('StrataAgentRefused', 'strata_agent_objects_refused_total'),
];

/**
 * Cases for a counter that should not rise. `increase` does not see what was counted before the
 * first scrape.
 */
function counted(alert: string, name: string): readonly AlertCase[] {
  const process = 'process_start_time_seconds';
  return [
    {
      alert,
      what: 'one, long after the start',
      series: { [name]: '0x5 1x120', [process]: '-7200x130' },
      fires: { from: 6, until: 65, labels: prometheusAdds },
    },
    {
      alert,
      what: 'one before the first scrape',
      series: { [name]: '1x120', [process]: '-60x130' },
      fires: { from: 0, until: 59, labels: prometheusAdds },
    },
    { alert, what: 'one more than an hour ago', series: { [name]: '1x120', [process]: '-7200x130' } },
    { alert, what: 'none, of a process that has just started', series: { [name]: '0x120', [process]: '0x130' } },
  ];
}
