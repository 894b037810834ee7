/** The dashboard that answers: which node is sick, and which stage is slow where? */
import { WORKER_METRICS as W } from '@swefarm/shared';
import { promql, WINDOW } from './promql.ts';
import type { DashboardSpec } from './spec.ts';

const { now, rate, increase, quantile, share } = promql({ node: '=~$node' });

export const NODES: DashboardSpec = {
  key: 'nodes',
  title: 'Swefarm: nodes',
  about: 'Slots, stages, images, disk and health of workers, node by node.',
  variables: ['node'],
  rows: [
    {
      title: 'Work',
      panels: [
        {
          key: 'active',
          title: 'Rollouts in work',
          kind: 'timeseries',
          unit: 'short',
          stacked: true,
          queries: [
            { expr: now(W.activeRollouts, ['node']), legend: '{{node}}' },
            { expr: now(W.slots), legend: 'slots of all' },
          ],
          about:
            'Against the slots there are. Slots that stay free while rollouts wait are a paused or sick node.',
          next: ['nodes/health', 'queue/depth'],
        },
        {
          key: 'health',
          title: 'Paused or sick',
          kind: 'timeseries',
          unit: 'bool',
          queries: [
            { expr: now(W.paused, ['node'], {}, 'max'), legend: '{{node}} paused' },
            { expr: now(W.sick, ['node'], {}, 'max'), legend: '{{node}} sick' },
          ],
          about:
            'Paused: pressure on disk, event loop or artifact budget. Sick: its failures are held to be its own.',
          todo: '`swefarm status` says why. On the node, `swefarm-worker doctor` finds what is wrong with engine, disk and network; restart the worker once it is mended.',
          next: ['nodes/disk', 'nodes/lag', 'queue/artifacts'],
        },
        {
          key: 'attempts',
          title: 'Attempts that did not end well',
          kind: 'timeseries',
          unit: 'short',
          stacked: true,
          queries: [
            {
              expr: `${increase(W.attempts, WINDOW, ['node', 'class'], { class: '!~done|late|drained' })} > 0 or sum(${increase(W.attempts, WINDOW, [])}) * 0`,
              legend: '{{node}} {{class}}',
            },
          ],
          about: 'By node and class of failure within the window, retried or not.',
          todo: 'One node only: that node. Every node: what they share (registry, policy endpoint, Redis).',
          next: ['training/failures'],
        },
        {
          key: 'containers',
          title: 'Containers',
          kind: 'timeseries',
          unit: 'short',
          queries: [
            { expr: now(W.containers, ['node']), legend: '{{node}}' },
            { expr: now(W.leaked, ['node']), legend: '{{node}} leaked' },
            { expr: increase(W.reaped, WINDOW, ['node']), legend: '{{node}} reaped' },
          ],
          about:
            'Of living workers; those that nobody works in any more; and those removed for workers that died.',
          todo: 'Leaked: the engine does not remove. Look at its log, then drain and restart the worker: the next one on the node removes what is left.',
          next: ['nodes/stages'],
        },
      ],
    },
    {
      title: 'Stages',
      panels: [
        {
          key: 'evaluations',
          title: 'Evaluations by purpose',
          kind: 'timeseries',
          unit: 'short',
          queries: [{ expr: increase(W.evaluations, WINDOW, ['purpose']), legend: '{{purpose}}' }],
          about:
            'Runs of tests: for the verdict on a patch, to evaluate a resolved patch again, and as controls. The last two are the price of trust.',
          todo: 'Many control: see the panel of control evaluations. Many second: patches carry signs of forgery, or the log of a family shows no end of its sessions; look at report.trust of resolved rollouts.',
          next: ['nodes/controls', 'nodes/stages'],
        },
        {
          key: 'controls',
          title: 'Control evaluations',
          kind: 'timeseries',
          unit: 'short',
          queries: [
            {
              expr: increase(W.controlEvaluations, WINDOW, ['tree', 'outcome']),
              legend: '{{tree}} {{outcome}}',
            },
          ],
          about:
            'Evaluations of the untouched tree and of gold that decide whether a patch or its instance is at fault.',
          todo: 'Many not_started or timed_out of gold: instances are broken or the time limit is too small; run swefarm health over the dataset. Many lost: look at failures of sandboxes.',
          next: ['nodes/stages'],
        },
        {
          key: 'stages',
          title: 'Mean seconds by stage',
          kind: 'timeseries',
          unit: 's',
          queries: [
            {
              expr: share(
                rate(W.stageSeconds, WINDOW, ['node', 'stage'], {}, '_sum'),
                rate(W.stageSeconds, WINDOW, ['node', 'stage'], {}, '_count'),
              ),
              legend: '{{node}} {{stage}}',
            },
          ],
          about: 'Of attempts on each node, as they pass their stages.',
          todo: 'sandbox slow on one node: its engine or disk. image slow: pulls, see images.',
          next: ['nodes/images', 'training/stages'],
        },
        {
          key: 'model',
          title: 'Answers of the policy',
          kind: 'timeseries',
          unit: 's',
          queries: [0.5, 0.95].map((q) => ({
            expr: quantile(q, W.modelSeconds, WINDOW),
            legend: `p${q * 100}`,
          })),
          about: 'Seconds until a turn was answered, repeated requests included.',
          todo: 'The endpoint is overloaded or being updated: fewer slots will not make a step longer then.',
          next: ['queue/endpoints', 'nodes/tokens'],
        },
        {
          key: 'commands',
          title: 'Commands of agents',
          kind: 'timeseries',
          unit: 's',
          queries: [0.5, 0.95].map((q) => ({
            expr: quantile(q, W.commandSeconds, WINDOW, ['node']),
            legend: `{{node}} p${q * 100}`,
          })),
          about: 'Seconds of one command.',
          next: ['nodes/lag'],
        },
        {
          key: 'tokens',
          title: 'Tokens a second, as they pass',
          kind: 'timeseries',
          unit: 'ops',
          queries: [{ expr: rate(W.tokens, WINDOW, ['side']), legend: '{{side}}' }],
          about: 'All workers, those of attempts that fail too.',
          next: ['training/tokens'],
        },
      ],
    },
    {
      title: 'Node',
      panels: [
        {
          key: 'images',
          title: 'Images',
          kind: 'timeseries',
          unit: 'short',
          queries: [
            { expr: now(W.images, ['node'], {}, 'max'), legend: '{{node}} on disk' },
            { expr: increase(W.imagesReady, WINDOW, ['node', 'source']), legend: '{{node}} {{source}}' },
            { expr: increase(W.imagesEvicted, WINDOW, ['node']), legend: '{{node}} evicted' },
          ],
          about: 'Images on each node, and how those that attempts asked for came to be there.',
          todo: 'Many pulls and evictions: more disk for images, or fewer images a node at a time.',
          next: ['nodes/disk'],
        },
        {
          key: 'disk',
          title: 'Disk',
          kind: 'timeseries',
          unit: 'bytes',
          queries: [
            { expr: now(W.diskFree, ['node'], {}, 'min'), legend: '{{node}} free' },
            { expr: now(W.diskSize, ['node'], {}, 'max'), legend: '{{node}} in all' },
            { expr: now(W.imageBytes, ['node'], {}, 'max'), legend: '{{node}} images' },
          ],
          about: 'Where the writable layers of sandboxes lie. Below 1 GiB the worker claims nothing.',
          todo: 'Remove images that no run needs, or give scratch_dir a larger disk.',
        },
        {
          key: 'lag',
          title: 'Event loop and locks',
          kind: 'timeseries',
          unit: 's',
          queries: [
            { expr: now(W.loopLagSeconds, ['node'], {}, 'max'), legend: '{{node}} lag' },
            { expr: increase(W.lockLosses, WINDOW, ['node']), legend: '{{node}} locks lost' },
            { expr: increase(W.beatsMissed, WINDOW, ['node']), legend: '{{node}} heartbeats missed' },
          ],
          about:
            'A worker whose event loop lags renews its locks too late, and its rollouts are started twice.',
          todo: 'Fewer slots (`--concurrency`) or a node of its own for the worker. Missed heartbeats on all nodes: Redis.',
          next: ['queue/redis'],
        },
      ],
    },
  ],
};
