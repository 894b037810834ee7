/** Opens the agent `installed`, a program of somebody else: finds its bundle on this node, follows the policy and binds an endpoint. */
import {
  type Bundle,
  cardDigest,
  findBundle,
  mountPath,
  requireFileOptions,
  typedOptions,
} from '@swefarm/agents';
import { type AgentCard, errorMessage, picturesRefusedBy, RolloutFailure, UsageError } from '@swefarm/shared';
import type { Permit } from '../admission/admission.ts';
import { runInstalledAgent } from '../agent/installed/installed.ts';
import type { InstalledFacts } from '../agent/installed/task.ts';
import { openPolicy } from '../agent/policy/policy.ts';
import type { Task } from './context.ts';
import { type OpenedAgent, recordTurnOfLine } from './openedagent.ts';
import { openPace, policyDeps } from './policydeps.ts';
import type { Staleness } from './staleness.ts';

/**
 * Throws RolloutFailure `instance_invalid` (no policy or card, or pictures), `no_agent` (no bundle on this node) or `policy_bad_request`
 * (no endpoint).
 */
export async function openInstalled(
  task: Task,
  staleness: Staleness,
  permit: Permit | null,
): Promise<OpenedAgent> {
  const { run, instance, signal, services, log } = task;
  const { card } = run.agent;
  if (!run.policy || !card)
    throw new RolloutFailure('instance_invalid', 'the run names no policy, or no card, for agent installed');
  requireTextOnly(task);
  requireOptions(card, task);
  const bundle = await bundleOf(card, task);
  using stack = new DisposableStack();
  const followed = stack.use(await services.policies.follow(run.policy));
  // The program's own requests would time out if the rollout were suspended, so only its start waits.
  const policy = stack.use(openPolicy(run.policy, policyDeps(task, followed, permit)));
  const pace = openPace(task, policy);
  const owned = stack.move();
  const activate = instance.environment?.activate ?? run.sandbox.activate;
  return {
    mounts: [{ source: bundle.folder, target: mountPath(card.bundle.name) }],
    async work({ container, suspect, pruned }) {
      await pruned;
      return await runInstalledAgent(
        { instance, config: run.agent, workdir: container.workdir, card, activate },
        {
          ...{ container, suspect, policy, signal, log },
          beforeTurn: () => staleness.check(),
          onTurn(trajectory, turn) {
            pace.note();
            recordTurnOfLine(task, trajectory, turn);
          },
          onFacts: (facts) => recordFacts(task, card, bundle, facts),
          onOutputs(outputs) {
            task.trace.outputs = outputs;
          },
        },
      );
    },
    pausedSeconds: () => policy.pause.seconds(),
    policyPace: pace.of,
    [Symbol.dispose]: () => owned.dispose(),
  };
}

/** `submit` refuses such runs. This function refuses those that another software version submitted. */
function requireTextOnly({ run, instance }: Task): void {
  if (run.agent.pictures === 'drop' || !instance.pictures?.length) return;
  const why = picturesRefusedBy('installed', 'text');
  throw new RolloutFailure('instance_invalid', `${why}; give --pictures drop to send the text alone`);
}

function requireOptions(card: AgentCard, { run }: Task): void {
  try {
    typedOptions(card, run.agent.options);
    requireFileOptions(card, run.agent.option_files);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new RolloutFailure('instance_invalid', errorMessage(error), { cause: error });
  }
}

async function bundleOf({ name, bundle }: AgentCard, { services }: Task): Promise<Bundle> {
  const { agents_dir: dir } = services.config;
  const found = await findBundle(dir, bundle.name, bundle.lock);
  if (found) return found;
  const { worker, node } = services.identity;
  const which = bundle.lock === null ? '' : ` with lock ${bundle.lock.slice(0, 12)}`;
  throw new RolloutFailure(
    'no_agent',
    `worker ${worker} on ${node} has no bundle ${bundle.name}${which} in ${dir}: run swefarm agents install ${name} there (agents_dir, SWEFARM_AGENTS_DIR)`,
  );
}

function recordFacts(task: Task, card: AgentCard, { manifest }: Bundle, facts: InstalledFacts): void {
  const { trace, run, services } = task;
  const { name, version } = card;
  trace.agent = {
    name,
    version,
    card: cardDigest(card, run.agent.options, run.agent.option_files),
    digest: manifest.digest,
    ...facts,
  };
  const { metrics } = services;
  for (const what of ['requests', 'whole', 'repeated', 'repaired', 'refused'] as const)
    metrics.agentRequests.inc({ agent: name, what }, facts[what]);
  const masked = Object.values(facts.masked).reduce((sum, turns) => sum + turns, 0);
  metrics.agentMaskedTurns.inc({ agent: name }, masked);
}
