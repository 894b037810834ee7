/** The alerts that need a person, each with what to do about it and a test that it fires and clears. */
import { LIVE_METRICS as L, OUTCOME_METRICS as O, WORKER_METRICS as W } from '@swefarm/shared';
import { promql } from './promql.ts';

const { now, increase, share } = promql();

export type AlertSpec = {
  name: string;
  expr: string;
  for: string;
  severity: 'page' | 'ticket';
  /** One line; may contain {{ $labels.x }}. */
  summary: string;
  todo: string;
  /** The panel that shows it, as `dashboard/panel`. */
  panel: string;
  /** For promtool: series (one value a minute), when it fires with which labels, and when it is clear again. */
  test: {
    series: Readonly<Record<string, string>>;
    fires: { at: string; labels?: Readonly<Record<string, string>> };
    clears: string;
  };
};

const idle = `(${now(L.farmSlots, [], { state: 'free' })} > 0 or ${now(L.workers, [], { state: 'claiming' })} == 0)`;

export const ALERTS: readonly AlertSpec[] = [
  {
    name: 'SwefarmInfrastructureFailures',
    expr: 'swefarm:infrastructure_failures:ratio5m > 0.02',
    for: '5m',
    severity: 'page',
    summary: 'Infrastructure spoils over 2 % of rollouts.',
    todo: 'See which cause grows. One node: drain it. image: registry or disk. policy: the endpoint. Failed rollouts carry no reward and can be submitted again with --resume.',
    panel: 'training/failures',
    test: {
      series: {
        [`${O.rollouts.name}{kind="training",outcome="judged"}`]: '0+95x60',
        [`${O.rollouts.name}{kind="training",outcome="failed"}`]: '0+5x20 100x40',
      },
      fires: { at: '15m' },
      clears: '40m',
    },
  },
  {
    name: 'SwefarmQueueNotMoving',
    expr: `${now(L.queueDepth)} > 0 and ${increase(O.rollouts, '10m')} == 0 and ${idle}`,
    for: '5m',
    severity: 'page',
    summary: 'Rollouts wait, nothing was committed for 10 minutes, and no worker takes them.',
    todo: 'No worker: start some. All paused: `swefarm status` says why. Slots free: the workers do not reach Redis, or listen to another prefix.',
    panel: 'queue/depth',
    test: {
      series: {
        [`${L.queueDepth.name}{class="training"}`]: '8x40 0x20',
        [`${O.rollouts.name}{kind="training",outcome="judged"}`]: '5x60',
        [`${L.farmSlots.name}{state="free"}`]: '0x60',
        [`${L.workers.name}{state="claiming"}`]: '0x60',
      },
      fires: { at: '30m' },
      clears: '50m',
    },
  },
  {
    name: 'SwefarmOldestRolloutTooOld',
    expr: `${now(L.queueOldest, ['class'], { class: 'validation' }, 'max')} > 900 or ${now(L.queueOldest, ['class'], { class: 'training' }, 'max')} > 3600`,
    for: '5m',
    severity: 'ticket',
    summary: 'A {{ $labels.class }} rollout waits too long (15 minutes for validation, 1 hour for training).',
    todo: 'Add workers, or see what holds the slots: a run of a higher class, slow stages, or paused nodes.',
    panel: 'queue/oldest',
    test: {
      series: { [`${L.queueOldest.name}{class="validation"}`]: '0+60x30 0x30' },
      fires: { at: '25m', labels: { class: 'validation' } },
      clears: '40m',
    },
  },
  {
    name: 'SwefarmNodeSick',
    expr: `${now(W.sick, ['node'], {}, 'max')} > 0`,
    for: '1m',
    severity: 'ticket',
    summary: 'Node {{ $labels.node }} is held to be at fault for failures and claims nothing.',
    todo: 'Run `swefarm-worker doctor` on it, mend what it finds, restart its worker.',
    panel: 'nodes/health',
    test: {
      series: { [`${W.sick.name}{node="n7",instance="n7:9400"}`]: '0x5 1x20 0x20' },
      fires: { at: '15m', labels: { node: 'n7' } },
      clears: '35m',
    },
  },
  {
    name: 'SwefarmNodePaused',
    expr: `${now(W.paused, ['node'], {}, 'max')} > 0`,
    for: '15m',
    severity: 'ticket',
    summary: 'Node {{ $labels.node }} claims nothing for 15 minutes.',
    todo: '`swefarm status` says why: disk, event loop, or the artifact budget of the whole farm.',
    panel: 'nodes/health',
    test: {
      series: { [`${W.paused.name}{node="n7",instance="n7:9400"}`]: '0x5 1x30 0x20' },
      fires: { at: '25m', labels: { node: 'n7' } },
      clears: '45m',
    },
  },
  {
    name: 'SwefarmNoResolve',
    expr: `${increase(O.groups, '1h', ['kind'])} >= 20 and ${increase(O.resolved, '1h', ['kind'])} == 0`,
    for: '5m',
    severity: 'page',
    summary: 'At least 20 groups of {{ $labels.kind }} ended within an hour and no rollout resolved.',
    todo: 'Grade gold on the same instances: `swefarm eval --agent golden`. Gold resolves: it is the model. Gold does not: images or evaluation.',
    panel: 'training/resolve-rate',
    test: {
      series: {
        [`${O.groups.name}{kind="training",end="complete"}`]: '0+1x120',
        [`${O.resolved.name}{kind="training"}`]: '0x60 0+1x60',
      },
      fires: { at: '50m', labels: { kind: 'training' } },
      clears: '100m',
    },
  },
  {
    name: 'SwefarmResolveRateFell',
    expr: 'swefarm:resolve_rate:ratio30m < 0.5 * avg_over_time(swefarm:resolve_rate:ratio30m[6h] offset 30m) and swefarm:judged:increase30m >= 50',
    for: '10m',
    severity: 'ticket',
    summary: 'The resolve rate of {{ $labels.kind }} fell below half of what it was over the last hours.',
    todo: 'Compare policy versions, evaluation ends and trust. A new dataset mix explains it harmlessly.',
    panel: 'training/resolve-rate',
    test: {
      series: {
        [`${O.rollouts.name}{kind="training",outcome="judged"}`]: '0+10x600',
        [`${O.resolved.name}{kind="training"}`]: '0+5x180 900+1x120 1025+5x300',
      },
      fires: { at: '235m', labels: { kind: 'training' } },
      clears: '400m',
    },
  },
  {
    name: 'SwefarmLeakedContainers',
    expr: `${now(W.leaked, ['node'])} > 0`,
    for: '5m',
    severity: 'ticket',
    summary: 'Containers on {{ $labels.node }} outlive their rollouts.',
    todo: 'The engine does not remove them. See its log; drain and restart the worker, the next one removes what is left.',
    panel: 'nodes/containers',
    test: {
      series: { [`${W.leaked.name}{node="n7",instance="n7:9400"}`]: '0x5 2x20 0x20' },
      fires: { at: '15m', labels: { node: 'n7' } },
      clears: '35m',
    },
  },
  {
    name: 'SwefarmRedisMemory',
    expr: `${share(now(L.redisMemory, [], {}, 'max'), now(L.redisMemoryLimit, [], {}, 'max'))} > 0.85`,
    for: '5m',
    severity: 'page',
    summary: 'Redis uses over 85 % of its memory; at the limit nothing can be committed.',
    todo: 'Remove collected runs, lower the artifact budget, put artifacts into a directory, or raise maxmemory.',
    panel: 'queue/redis',
    test: {
      series: { [L.redisMemory.name]: '10x5 90x20 10x20', [L.redisMemoryLimit.name]: '100x50' },
      fires: { at: '15m' },
      clears: '35m',
    },
  },
  {
    name: 'SwefarmArtifactBudget',
    expr: `${share(now(L.artifactBytes, [], {}, 'max'), now(L.artifactBudget, [], {}, 'max'))} > 0.9`,
    for: '5m',
    severity: 'page',
    summary: 'Artifacts take over 90 % of their budget; at 95 % workers stop claiming.',
    todo: 'Collect and remove old runs, shorten artifact_ttl_seconds, or raise artifact_budget_bytes.',
    panel: 'queue/artifacts',
    test: {
      series: { [L.artifactBytes.name]: '10x5 95x20 10x20', [L.artifactBudget.name]: '100x50' },
      fires: { at: '15m' },
      clears: '35m',
    },
  },
  {
    name: 'SwefarmPolicyUpdatingForLong',
    expr: `${now(L.policyState, ['policy'], { state: 'updating' }, 'max')} > 0`,
    for: '30m',
    severity: 'page',
    summary:
      'Policy {{ $labels.policy }} is updating for half an hour: every rollout that follows it stands still, and after policy_pause_limit_seconds gives its slot back.',
    todo: 'The trainer died in the middle of a weight update, most likely. `swefarm policy set NAME --state serving` lets rollouts go on, `swefarm cancel RUN` gives up what nobody waits for.',
    panel: 'queue/policies',
    test: {
      series: { [`${L.policyState.name}{policy="default",state="updating"}`]: '0x5 1x60 0x30' },
      fires: { at: '50m', labels: { policy: 'default' } },
      clears: '80m',
    },
  },
  {
    name: 'SwefarmPolicyEndpointDown',
    expr: `${now(L.endpointUp, ['endpoint'], {}, 'max')} == 0`,
    for: '2m',
    severity: 'page',
    summary: 'Every worker has set policy endpoint {{ $labels.endpoint }} aside.',
    todo: 'Ask it: `swefarm doctor --policy-url`. If it moved: `swefarm policy set --endpoints`.',
    panel: 'queue/endpoints',
    test: {
      series: { [`${L.endpointUp.name}{endpoint="http://gpu1:8000/v1"}`]: '1x5 0x20 1x20' },
      fires: { at: '15m', labels: { endpoint: 'http://gpu1:8000/v1' } },
      clears: '35m',
    },
  },
  {
    name: 'SwefarmEvaluationErrors',
    expr: `${share(
      increase(O.failed, '30m', [], { stage: '=~evaluation|instance' }),
      increase(O.rollouts, '30m', [], { outcome: '!=cancelled' }),
    )} > 0.02`,
    for: '5m',
    severity: 'ticket',
    summary: 'Over 2 % of rollouts cannot be graded.',
    todo: 'Check gold of these instances with `swefarm health`; rows whose gold fails belong out of the dataset.',
    panel: 'training/evaluations',
    test: {
      series: {
        [`${O.failed.name}{kind="training",stage="evaluation",class="evaluation_timeout"}`]: '0+5x20 100x80',
        [`${O.rollouts.name}{kind="training",outcome="judged"}`]: '0+95x100',
      },
      fires: { at: '15m' },
      clears: '70m',
    },
  },
  {
    name: 'SwefarmForgedReports',
    expr: `${increase(O.reports, '1h', ['kind'], { trust: 'forged' })} > 0`,
    for: '0m',
    severity: 'ticket',
    summary: 'Reports of {{ $labels.kind }} were forged.',
    todo: 'Read one with `swefarm show`. They earn nothing, but a policy that learns to forge should be known of.',
    panel: 'training/trust',
    test: {
      series: { [`${O.reports.name}{kind="training",trust="forged"}`]: '0x5 2x120' },
      fires: { at: '15m', labels: { kind: 'training' } },
      clears: '100m',
    },
  },
  {
    name: 'SwefarmWorkerLost',
    expr: `${increase(L.workersLost, '10m')} > 0`,
    for: '0m',
    severity: 'ticket',
    summary: 'A worker died or lost Redis without taking leave.',
    todo: 'Its rollouts are attempted elsewhere. Look for the end of its log: memory limit, preemption, or a crash of ours.',
    panel: 'queue/lost',
    test: {
      series: { [L.workersLost.name]: '0x5 1x60' },
      fires: { at: '10m' },
      clears: '30m',
    },
  },
  {
    name: 'SwefarmLoopLag',
    expr: `${now(W.loopLagSeconds, ['node'], {}, 'max')} > 1`,
    for: '2m',
    severity: 'ticket',
    summary:
      'The event loop of a worker on {{ $labels.node }} lags over a second; it claims nothing and may lose locks.',
    todo: 'Give it fewer slots (--concurrency), or CPUs of its own.',
    panel: 'nodes/lag',
    test: {
      series: { [`${W.loopLagSeconds.name}{node="n7",instance="n7:9400"}`]: '0.01x5 1.5x20 0.01x20' },
      fires: { at: '15m', labels: { node: 'n7' } },
      clears: '35m',
    },
  },
  {
    name: 'SwefarmRedisDown',
    expr: `${now(L.redisUp, [], {}, 'min')} == 0 or absent(${L.redisUp.name})`,
    for: '2m',
    severity: 'page',
    summary: 'The gateway does not reach Redis, or is not scraped itself.',
    todo: 'Workers wait and lose nothing while Redis has its append-only file. Bring Redis or the gateway back.',
    panel: 'queue/redis-seconds',
    test: {
      series: { [L.redisUp.name]: '1x5 0x20 1x20' },
      fires: { at: '15m' },
      clears: '35m',
    },
  },
];
