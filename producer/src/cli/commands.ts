/** The commands of `swefarm`: name, summary and source of each. Only the source of the command that was asked for is loaded. */
import type { Declaration } from './declare.ts';

export type CommandEntry = {
  name: string;
  /** What `swefarm --help` says of it, and the first line of its own help. */
  summary: string;
  /** Loads its source. */
  load: () => Promise<Declaration>;
};

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'rollout',
    summary:
      'run the rollouts of a dataset on this machine: submit them, start a local worker, collect the results',
    load: async () => (await import('./rollout.ts')).rollout,
  },
  {
    name: 'eval',
    summary: 'grade predictions as the SWE-bench harness does, and write the same files',
    load: async () => (await import('./eval.ts')).evaluate,
  },
  {
    name: 'export',
    summary: 'write chosen rollouts as training data, predictions or trajectories of another program',
    load: async () => (await import('./export.ts')).exportRollouts,
  },
  {
    name: 'import',
    summary: 'store trajectories or predictions of another program as if they had been collected',
    load: async () => (await import('./import.ts')).importing,
  },
  {
    name: 'preds',
    summary: 'merge and check predictions of the SWE-bench harness',
    load: async () => (await import('./preds.ts')).preds,
  },
  {
    name: 'regrade',
    summary: 'grade stored logs and reward stored results again, without running anything',
    load: async () => (await import('./regrade.ts')).regrade,
  },
  {
    name: 'submit',
    summary: 'queue the rollouts of a dataset and print the id of the run',
    load: async () => (await import('./submit.ts')).submit,
  },
  {
    name: 'collect',
    summary: 'write the results of a run to a file as they come, each exactly once, until the run is done',
    load: async () => (await import('./collect.ts')).collect,
  },
  {
    name: 'serve',
    summary: 'serve the farm over HTTP: agent server of NeMo Gym, native API, page, metrics',
    load: async () => (await import('./serve.ts')).serve,
  },
  {
    name: 'report',
    summary: 'report on results: accuracy, pass@k, failures by cause, by repository and by group',
    load: async () => (await import('./report.ts')).report,
  },
  {
    name: 'score',
    summary:
      'ask a verifier how likely each rollout of an output solved its task; the same command continues',
    load: async () => (await import('./score.ts')).score,
  },
  {
    name: 'select',
    summary: 'write the rollout with the highest score of each instance: the best of k',
    load: async () => (await import('./select.ts')).select,
  },
  {
    name: 'status',
    summary: 'show runs, queue and workers, or one run in detail',
    load: async () => (await import('./status.ts')).status,
  },
  {
    name: 'watch',
    summary: 'show runs, nodes, rates and recent failures, again and again until Ctrl-C',
    load: async () => (await import('./watch.ts')).watch,
  },
  {
    name: 'show',
    summary: 'show one rollout: its facts, turns, patch and report',
    load: async () => (await import('./show.ts')).show,
  },
  {
    name: 'logs',
    summary: 'show the turns of a rollout, also while it runs',
    load: async () => (await import('./logs.ts')).logs,
  },
  {
    name: 'cancel',
    summary:
      'cancel runs, groups, rollouts or all runs of a policy version; what is cancelled counts neither as failed nor as judged',
    load: async () => (await import('./cancel.ts')).cancel,
  },
  {
    name: 'remove',
    summary: 'remove runs with their results and artifacts from Redis before they expire',
    load: async () => (await import('./remove.ts')).remove,
  },
  {
    name: 'pause',
    summary: 'start no more rollouts of a run until it is resumed; running ones continue',
    load: async () => (await import('./pause.ts')).pause,
  },
  {
    name: 'resume',
    summary: 'resume a run that was paused, by hand or by the farm',
    load: async () => (await import('./pause.ts')).resume,
  },
  {
    name: 'drain',
    summary:
      'stop the claims of a node; its rollouts may finish within the grace period, then other nodes run them',
    load: async () => (await import('./drain.ts')).drain,
  },
  {
    name: 'policy',
    summary: 'show and set which weights are served where, and whether they can be asked now',
    load: async () => (await import('./policy.ts')).policy,
  },
  {
    name: 'health',
    summary:
      'evaluate the gold patch and the untouched tree of each instance, and record which instances are broken',
    load: async () => (await import('./health.ts')).health,
  },
  {
    name: 'dataset',
    summary: 'look at datasets, choose rows, convert them',
    load: async () => (await import('./dataset.ts')).dataset,
  },
  {
    name: 'images',
    summary: 'list or pull the images that a dataset needs, on this node',
    load: async () => (await import('./images.ts')).images,
  },
  {
    name: 'redis',
    summary:
      'run the Redis of a farm on this node: one leader, with copies and address on a shared file system',
    load: async () => (await import('./redis.ts')).redis,
  },
  {
    name: 'acl',
    summary: 'write an ACL file for Redis, and files with the passwords of worker and producer',
    load: async () => (await import('./acl.ts')).acl,
  },
  {
    name: 'doctor',
    summary: 'check Redis, the queue, the artifact store, workers and policy endpoints',
    load: async () => (await import('./doctor.ts')).doctor,
  },
];
