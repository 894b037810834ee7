/** Lists the commands of `swefarm` with their summaries. Only the source of the chosen command is loaded. */
import type { Command } from 'commander';
import type { Declaration } from './declare.ts';

const SUMMARIES = {
  init: 'write a run configuration that explains its settings, and ask for the most important ones',
  rollout:
    'run the rollouts of a dataset on this machine: submit them, start a local worker, collect the results',
  eval: 'grade predictions as the SWE-bench harness does, and write the same files',
  export: 'write chosen rollouts as training data, predictions or trajectories of another program',
  import: 'store trajectories or predictions of another program as if they had been collected',
  preds: 'merge and check predictions of the SWE-bench harness',
  regrade: 'grade stored logs and reward stored results again, without running anything',
  submit: 'queue the rollouts of a dataset and print the id of the run',
  shell: 'run commands in the sandbox of a stored rollout, as it was after one of its turns',
  branch: 'queue rollouts that continue a stored rollout behind one of its turns',
  collect: 'write the results of a run to a file as they come, each exactly once, until the run is done',
  serve: 'serve the farm over HTTP: agent server of NeMo Gym, native API, page, metrics',
  report: 'report on results: accuracy, pass@k, failures by cause, by repository and by group',
  compare: 'compare two outputs over the instances of both: won, lost, and whether chance explains it',
  score: 'ask a verifier how likely each rollout of an output solved its task; the same command continues',
  select: 'write the rollout with the highest score of each instance: the best of k',
  status: 'show runs, queue and workers, or one run in detail',
  watch: 'show runs, nodes, rates and recent failures, again and again until Ctrl-C',
  show: 'show one rollout: its facts, turns, patch and report',
  logs: 'show the turns of a rollout, also while it runs',
  cancel:
    'cancel runs, groups, rollouts or all runs of a policy version; what is cancelled counts neither as failed nor as judged',
  remove: 'remove runs with their results and artifacts from Redis before they expire',
  pause: 'start no more rollouts of a run until it is resumed; running ones continue',
  resume: 'resume a run that was paused, by hand or by the farm',
  drain:
    'stop the claims of a node; its rollouts may finish within the grace period, then other nodes run them',
  policy: 'show and set which weights are served where, and whether they can be asked now',
  'follow-policy': 'validate a policy while it is trained: queue a run of a dataset for each nth version',
  health:
    'evaluate the gold patch and the untouched tree of each instance, and record which instances are broken',
  dataset: 'look at datasets, choose rows, convert them',
  images: 'list or pull the images that a dataset needs, on this node',
  agents: 'install, list and check agents that come as programs, on this node',
  redis: 'run the Redis of a farm on this node: one leader, with copies and address on a shared file system',
  acl: 'write an ACL file for Redis, and files with the passwords of worker and producer',
  doctor: 'check Redis, the queue, the artifact store, workers and policy endpoints',
  completion: 'print a script with which a shell completes commands, options and files',
  schema: 'print the JSON Schema with which an editor completes and checks a file of swefarm',
  man: 'print the man page of a command, or write all man pages into a folder',
} as const;

const SOURCES: Readonly<Record<keyof typeof SUMMARIES, () => Promise<Declaration>>> = {
  init: async () => (await import('./init.ts')).init,
  rollout: async () => (await import('./rollout.ts')).rollout,
  eval: async () => (await import('./eval.ts')).evaluate,
  export: async () => (await import('./export.ts')).exportRollouts,
  import: async () => (await import('./import.ts')).importing,
  preds: async () => (await import('./preds.ts')).preds,
  regrade: async () => (await import('./regrade.ts')).regrade,
  submit: async () => (await import('./submit.ts')).submit,
  shell: async () => (await import('./shell.ts')).shell,
  branch: async () => (await import('./branch.ts')).branch,
  collect: async () => (await import('./collect.ts')).collect,
  serve: async () => (await import('./serve.ts')).serve,
  report: async () => (await import('./report.ts')).report,
  compare: async () => (await import('./compare.ts')).compare,
  score: async () => (await import('./score.ts')).score,
  select: async () => (await import('./select.ts')).select,
  status: async () => (await import('./status.ts')).status,
  watch: async () => (await import('./watch.ts')).watch,
  show: async () => (await import('./show.ts')).show,
  logs: async () => (await import('./logs.ts')).logs,
  cancel: async () => (await import('./control.ts')).cancel,
  remove: async () => (await import('./remove.ts')).remove,
  pause: async () => (await import('./control.ts')).pause,
  resume: async () => (await import('./control.ts')).resume,
  drain: async () => (await import('./control.ts')).drain,
  policy: async () => (await import('./policy.ts')).policy,
  'follow-policy': async () => (await import('./followpolicy.ts')).followPolicy,
  health: async () => (await import('./health.ts')).health,
  dataset: async () => (await import('./dataset.ts')).dataset,
  images: async () => (await import('./images.ts')).images,
  agents: async () => (await import('./agents.ts')).agents,
  redis: async () => (await import('./redis.ts')).redis,
  acl: async () => (await import('./acl.ts')).acl,
  doctor: async () => (await import('./doctor.ts')).doctor,
  completion: async () => (await import('./completion.ts')).completion(withAllCommands),
  schema: async () => (await import('./schema.ts')).schema,
  man: async () => (await import('./completion.ts')).man(withAllCommands),
};

export type CommandEntry = {
  name: string;
  /** Line of the command in `swefarm --help`, and first line of the command's help. */
  summary: string;
  load: () => Promise<Declaration>;
};

export const COMMANDS: readonly CommandEntry[] = Object.entries(SUMMARIES).map(([name, summary]) => ({
  name,
  summary,
  load: SOURCES[name as keyof typeof SUMMARIES],
}));

/** Adds all commands to `program`, which loads the source of every command. */
async function withAllCommands(program: Command): Promise<Command> {
  withGlobalOptions(program);
  for (const { name, summary, load } of COMMANDS) (await load())(program, name).description(summary);
  return program;
}

/** Adds the description of `swefarm` and the options that need no command. */
export const withGlobalOptions = (program: Command): Command =>
  program
    .description(
      'Run rollouts of software-engineering agents: submit them, let workers run and grade them, collect the results.',
    )
    .option('-V, --version', 'print the version');
