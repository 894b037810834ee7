/** The dashboard that answers: what waits, which workers could take it, and does Redis hold? */
import { LIVE_METRICS as L, OUTCOME_METRICS as O, WORKER_METRICS as W } from '@swefarm/shared';
import { promql, WINDOW } from './promql.ts';
import type { DashboardSpec } from './spec.ts';

const { now, increase, rate } = promql();

export const QUEUE: DashboardSpec = {
  key: 'queue',
  title: 'Swefarm: queue and Redis',
  about: 'Depth and age of the queue, workers, policy endpoints, Redis and the artifact store.',
  variables: [],
  rows: [
    {
      title: 'Queue',
      panels: [
        {
          key: 'depth',
          title: 'Rollouts that wait',
          kind: 'timeseries',
          unit: 'short',
          stacked: true,
          queries: [{ expr: now(L.queueDepth, ['class']), legend: '{{class}}' }],
          about:
            'By class of priority: validation (and sessions) goes before training, training before collection.',
          todo: 'Waiting while slots are free: workers are paused or cannot reach Redis. No slots free: more workers.',
          next: ['queue/workers', 'nodes/health'],
        },
        {
          key: 'oldest',
          title: 'Age of the oldest',
          kind: 'timeseries',
          unit: 's',
          queries: [{ expr: now(L.queueOldest, ['class'], {}, 'max'), legend: '{{class}}' }],
          about: 'Among the next 200 of each class.',
          todo: 'A class that only ages is starved by the ones before it: add workers or submit less at once.',
          next: ['queue/depth'],
        },
        {
          key: 'jobs',
          title: 'Jobs in work, delayed, broken',
          kind: 'timeseries',
          unit: 'short',
          queries: [{ expr: now(L.queueJobs, ['state']), legend: '{{state}}' }],
          about:
            'delayed: waiting for another attempt. failed: broken inside the queue, which is a bug of ours.',
          next: ['training/attempts'],
        },
        {
          key: 'commits',
          title: 'Commits a second',
          kind: 'timeseries',
          unit: 'ops',
          stacked: true,
          queries: [{ expr: rate(O.rollouts, WINDOW, ['outcome']), legend: '{{outcome}}' }],
          about: 'What leaves the farm.',
          next: ['training/outcomes'],
        },
      ],
    },
    {
      title: 'Workers and policy',
      panels: [
        {
          key: 'workers',
          title: 'Workers and slots',
          kind: 'timeseries',
          unit: 'short',
          queries: [
            { expr: now(L.workers, ['state']), legend: 'workers {{state}}' },
            { expr: now(L.farmSlots, ['state']), legend: 'slots {{state}}' },
          ],
          about: 'Of living workers, whether they are scraped or not.',
          next: ['nodes/active'],
        },
        {
          key: 'lost',
          title: 'Workers lost',
          kind: 'timeseries',
          unit: 'short',
          queries: [{ expr: increase(L.workersLost, WINDOW), legend: 'lost' }],
          about: 'They died or lost Redis without taking leave. Their rollouts are attempted elsewhere.',
          todo: 'Look for the end of its log; on SLURM and Kubernetes for a kill by memory limit or preemption without notice.',
          next: ['training/attempts'],
        },
        {
          key: 'endpoints',
          title: 'Policy endpoints',
          kind: 'timeseries',
          unit: 'short',
          queries: [
            { expr: now(L.endpointUp, ['endpoint'], {}, 'min'), legend: '{{endpoint}} up' },
            { expr: now(L.endpointLoad, ['endpoint']), legend: '{{endpoint}} rollouts' },
          ],
          about: 'As workers see them. Rollouts on an endpoint that is down go on elsewhere or wait.',
          todo: 'Ask the endpoint itself: `swefarm doctor --policy-url URL`. If it moved: `swefarm policy set`.',
          next: ['nodes/model', 'queue/policies'],
        },
        {
          key: 'policies',
          title: 'State of policies',
          kind: 'timeseries',
          unit: 'bool',
          queries: [
            { expr: now(L.policyState, ['policy', 'state'], {}, 'max'), legend: '{{policy}} {{state}}' },
          ],
          about: 'As the trainer said: while updating or asleep nothing is sent and clocks stand still.',
          todo: 'Updating for very long: the trainer died in the middle. `swefarm policy set --state serving` lets rollouts go on.',
        },
        {
          key: 'escaped',
          title: 'Errors that nobody caught',
          kind: 'timeseries',
          unit: 'short',
          queries: [
            { expr: increase(W.escaped, WINDOW, ['node', 'kind']), legend: '{{node}} {{kind}}' },
            { expr: increase(L.escaped, WINDOW, ['kind']), legend: 'gateway {{kind}}' },
          ],
          about:
            'A rejection costs at most the rollout that it belonged to. After an exception the process hands back what it has and ends with code 70.',
          todo: 'Each is a fault of ours: its log has the stack, report it.',
        },
      ],
    },
    {
      title: 'Redis and artifacts',
      panels: [
        {
          key: 'redis',
          title: 'Redis',
          kind: 'timeseries',
          unit: 'bytes',
          queries: [
            { expr: now(L.redisMemory, [], {}, 'max'), legend: 'used' },
            { expr: now(L.redisMemoryLimit, [], {}, 'max'), legend: 'limit' },
          ],
          about: 'At its limit Redis refuses writes: no commits, no locks.',
          todo: 'Remove runs that were collected, lower artifact_budget_bytes, put artifacts into a directory, or raise maxmemory.',
          next: ['queue/artifacts'],
        },
        {
          key: 'redis-seconds',
          title: 'Round trip and connections',
          kind: 'timeseries',
          unit: 'short',
          queries: [
            { expr: `${now(L.redisSeconds, [], {}, 'max')} * 1000`, legend: 'round trip in ms' },
            { expr: now(L.redisClients, [], {}, 'max'), legend: 'connections' },
            { expr: now(L.redisUp, [], {}, 'min'), legend: 'up' },
          ],
          about: 'From the gateway.',
          todo: 'Milliseconds in a local network: Redis is on a busy machine, or saves to a slow disk.',
        },
        {
          key: 'artifacts',
          title: 'Artifact budget',
          kind: 'timeseries',
          unit: 'bytes',
          queries: [
            { expr: now(L.artifactBytes, [], {}, 'max'), legend: 'used' },
            { expr: now(L.artifactBudget, [], {}, 'max'), legend: 'budget' },
          ],
          about: 'Trajectories, patches and reports. Near the budget workers stop claiming.',
          todo: 'Collect and remove old runs, shorten artifact_ttl_seconds, or raise artifact_budget_bytes.',
          next: ['nodes/health'],
        },
        {
          key: 'artifact-count',
          title: 'Artifacts',
          kind: 'stat',
          unit: 'short',
          queries: [{ expr: now(L.artifacts, [], {}, 'max'), legend: 'artifacts' }],
          about: 'In the store now.',
        },
        {
          key: 'skipped',
          title: 'Skipped records',
          kind: 'timeseries',
          unit: 'short',
          queries: [
            { expr: now(L.resultsUnreadable, [], {}, 'max'), legend: 'results that cannot be read' },
            { expr: now(W.runsSkipped, [], {}, 'max'), legend: 'runs that maintenance leaves alone' },
          ],
          about:
            'Damaged, out of bounds, or written by a newer version of the software. Everything else goes on.',
          todo: 'The logs of gateway and maintenance name each. A newer version: upgrade the rest. Damaged: `swefarm remove RUN`.',
        },
      ],
    },
  ],
};
