/** The dashboard that answers: is the model getting better, and does the farm slow down or spoil its training? */
import { OUTCOME_METRICS as O } from '@swefarm/shared';
import { COST } from './cost.ts';
import { POLICY_VERSIONS } from './policyversions.ts';
import { promql, TRAINING_VARIABLES, WINDOW } from './promql.ts';
import type { DashboardSpec } from './spec.ts';

const { rate, increase, quantile, share, without } = promql(TRAINING_VARIABLES);

export const TRAINING: DashboardSpec = {
  key: 'training',
  title: 'Swefarm: training',
  about: 'Resolve rate, turns, reward and groups by kind of run, and what spoils them.',
  variables: ['kind'],
  rows: [
    {
      title: 'Outcome',
      panels: [
        {
          key: 'resolve-rate',
          title: 'Resolve rate',
          kind: 'timeseries',
          unit: 'percentunit',
          max: 1,
          queries: [
            {
              expr: share(
                rate(O.resolved, WINDOW, ['kind']),
                without(
                  rate(O.rollouts, WINDOW, ['kind'], { outcome: 'judged' }),
                  rate(O.scored, WINDOW, ['kind']),
                ),
              ),
              legend: '{{kind}}',
            },
          ],
          about:
            'Resolved over judged rollouts. Failed and cancelled ones are in neither, nor are those whose dataset gives a number and no verdict: see the mean reward.',
          todo: 'A sudden fall with turns unchanged: look at trust and evaluation ends first, then at the policy version. At zero: run `swefarm eval --predictions gold` on the same instances; gold must resolve.',
          next: ['training/versions-resolve-rate', 'training/evaluations', 'training/exits'],
        },
        {
          key: 'turns',
          title: 'Average turns',
          kind: 'timeseries',
          unit: 'short',
          queries: [
            {
              expr: share(
                rate(O.turns, WINDOW, ['kind'], {}, '_sum'),
                rate(O.turns, WINDOW, ['kind'], {}, '_count'),
              ),
              legend: '{{kind}}',
            },
            { expr: quantile(0.95, O.turns, WINDOW, ['kind']), legend: '{{kind}} p95' },
          ],
          about: 'Turns of judged rollouts.',
          todo: 'Rising towards the turn limit: the model loops, or the context limit no longer stops it. Near 1: it answers without acting, look at exit statuses.',
          next: ['training/exits'],
        },
        {
          key: 'reward',
          title: 'Mean reward',
          kind: 'timeseries',
          unit: 'short',
          queries: [
            {
              expr: share(rate(O.reward, WINDOW, ['kind']), rate(O.rewarded, WINDOW, ['kind'])),
              legend: '{{kind}}',
            },
          ],
          about: 'Over rollouts that carry a reward; of datasets that give numbers, the mean of these.',
          next: ['training/trust'],
        },
        {
          key: 'families',
          title: 'Resolve rate by dataset family',
          kind: 'timeseries',
          unit: 'percentunit',
          max: 1,
          queries: [
            {
              expr: share(
                rate(O.families, WINDOW, ['family'], { end: 'resolved' }),
                rate(O.families, WINDOW, ['family'], { end: '=~resolved|unresolved' }),
              ),
              legend: '{{family}}',
            },
          ],
          about: 'Of rollouts with a verdict. Families whose graders give numbers alone have none here.',
          todo: 'One family at zero while others are not: look whether its rollouts fail (`swefarm report`), and whether `swefarm eval --predictions gold` resolves its rows on the same workers.',
          next: ['training/resolve-rate'],
        },
        {
          key: 'outcomes',
          title: 'Rollouts by outcome',
          kind: 'timeseries',
          unit: 'ops',
          stacked: true,
          queries: [{ expr: rate(O.rollouts, WINDOW, ['outcome']), legend: '{{outcome}}' }],
          about: 'Committed rollouts a second.',
          next: ['training/failures', 'queue/depth'],
        },
      ],
    },
    {
      title: 'Groups and the tail of the step',
      panels: [
        {
          key: 'groups',
          title: 'Groups',
          kind: 'timeseries',
          unit: 'short',
          stacked: true,
          queries: [
            { expr: increase(O.groups, WINDOW, ['end']), legend: '{{end}}' },
            { expr: increase(O.refills, WINDOW), legend: 'rollouts refilled' },
          ],
          about:
            'Groups that ended within the window: complete, or short of usable rollouts; and rollouts added to save one.',
          todo: 'Short groups are masked or dropped by the trainer. Find the cause under failures.',
          next: ['training/failures'],
        },
        {
          key: 'tail',
          title: 'Tail of the step',
          kind: 'timeseries',
          unit: 's',
          queries: [0.5, 0.95, 0.99].map((q) => ({
            expr: quantile(q, O.seconds, WINDOW, []),
            legend: `p${q * 100}`,
          })),
          about: 'Seconds of committed attempts, from claim to commit. A step waits for its slowest group.',
          todo: 'p99 far above p95: a deadline or oversampling for the group is cheaper than waiting.',
          next: ['training/stages', 'nodes/stages'],
        },
        {
          key: 'stages',
          title: 'Where a rollout spends its time',
          kind: 'timeseries',
          unit: 's',
          stacked: true,
          queries: [
            {
              expr: `${rate(O.stageSecondsSum, WINDOW, ['stage'], { stage: '=~queued|image|sandbox|model|command|patch|evaluation' })} / ignoring (stage) group_left () (${rate(O.seconds, WINDOW, [], {}, '_count')} > 0)`,
              legend: '{{stage}}',
            },
          ],
          about: 'Mean seconds a committed rollout spent in each stage.',
          todo: 'queued: more workers, or the queue holds another run first. image: pull ahead, or more disk for images. model: the policy endpoint. evaluation: slow tests.',
          next: ['queue/oldest', 'nodes/images', 'nodes/model', 'nodes/stages'],
        },
        {
          key: 'tokens',
          title: 'Tokens a second',
          kind: 'timeseries',
          unit: 'ops',
          queries: [{ expr: rate(O.tokens, WINDOW, ['side']), legend: '{{side}}' }],
          about: 'Of committed rollouts, as the endpoint counted them.',
          next: ['nodes/tokens', 'training/cost'],
        },
      ],
    },
    COST,
    {
      title: 'What is not the model',
      panels: [
        {
          key: 'failures',
          title: 'Failures by cause',
          kind: 'timeseries',
          unit: 'short',
          stacked: true,
          queries: [
            {
              expr: `${increase(O.failed, WINDOW, ['stage', 'class'])} > 0 or sum(${increase(O.failed, WINDOW)})`,
              legend: '{{stage}}/{{class}}',
            },
          ],
          about:
            'Rollouts that infrastructure spoilt for good within the window; they carry no reward. The line without a name is their sum.',
          todo: '`swefarm status RUN` names rollouts and messages. image: registry or disk. sandbox: the engine of a node, see Nodes. policy: the endpoint. evaluation, instance: the dataset row; check it with `swefarm health`. worker: crashes, see the log of that worker.',
          next: ['nodes/attempts', 'queue/endpoints'],
        },
        {
          key: 'failure-share',
          title: 'Share that infrastructure spoilt',
          kind: 'timeseries',
          unit: 'percentunit',
          queries: [
            {
              expr: share(
                rate(O.rollouts, WINDOW, ['kind'], { outcome: 'failed' }),
                rate(O.rollouts, WINDOW, ['kind']),
              ),
              legend: '{{kind}}',
            },
          ],
          about: 'Failed over all committed rollouts.',
          todo: 'Over 2 % pages. See failures by cause for what to mend.',
          next: ['training/failures'],
        },
        {
          key: 'attempts',
          title: 'Attempts by how they ended',
          kind: 'timeseries',
          unit: 'short',
          stacked: true,
          queries: [
            {
              expr: `${increase(O.attempts, WINDOW, ['class'])} > 0 or sum(${increase(O.attempts, WINDOW)})`,
              legend: '{{class}}',
            },
          ],
          about:
            'Of committed rollouts: what was retried and why. `lost` are crashes of workers, `drained` is free. The line without a name is their sum.',
          next: ['nodes/attempts'],
        },
        {
          key: 'cancelled',
          title: 'Cancelled by reason',
          kind: 'timeseries',
          unit: 'short',
          stacked: true,
          queries: [{ expr: increase(O.cancelled, WINDOW, ['reason']), legend: '{{reason}}' }],
          about:
            'Neither failure nor reward: told to stop, past the deadline, no longer needed, too stale, or without an owner.',
        },
      ],
    },
    {
      title: 'Ends, evaluation and trust',
      panels: [
        {
          key: 'exits',
          title: 'Why agents stop',
          kind: 'timeseries',
          unit: 'ops',
          stacked: true,
          queries: [{ expr: rate(O.exits, WINDOW, ['exit_status']), legend: '{{exit_status}}' }],
          about: 'Exit statuses of committed rollouts.',
          todo: 'format_limit rising: the model no longer keeps the form of its answers. time_limit: the endpoint or the commands are slow.',
          next: ['nodes/model'],
        },
        {
          key: 'unread-calls',
          title: 'Tool calls that cannot be read',
          kind: 'timeseries',
          unit: 'percentunit',
          queries: [
            {
              expr: share(rate(O.unread, WINDOW, ['kind']), rate(O.answers, WINDOW, ['kind'])),
              legend: '{{kind}}',
            },
          ],
          about: 'Answers whose tool call could not be read, over all answers of committed rollouts.',
          todo: "Near 1: the parser of tool calls is wrong (`--tool-parser`, or the endpoint's own).",
          next: ['nodes/model'],
        },
        {
          key: 'evaluations',
          title: 'How evaluations end',
          kind: 'timeseries',
          unit: 'ops',
          stacked: true,
          queries: [{ expr: rate(O.evaluations, WINDOW, ['end']), legend: '{{end}}' }],
          about: 'Of committed rollouts.',
          todo: 'timed_out or tests_cannot_start for many instances at once is the node or the images, not the patches: grade gold with `swefarm eval --predictions gold`.',
          next: ['nodes/stages'],
        },
        {
          key: 'trust',
          title: 'Trust in reports',
          kind: 'timeseries',
          unit: 'short',
          stacked: true,
          queries: [
            { expr: increase(O.reports, WINDOW, ['trust'], { trust: '!=clean' }), legend: '{{trust}}' },
          ],
          about: 'Judged reports that are not clean. Forged ones earn nothing.',
          todo: 'Read one: `swefarm show ROLLOUT`. A model that learnt to forge is a matter for its reward, not for the farm.',
        },
      ],
    },
    POLICY_VERSIONS,
  ],
};
