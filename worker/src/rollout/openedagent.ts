/** The interface between a rollout and an agent that works in a sandbox, and the record of its turns. */
import type { Mount } from '@swefarm/sandbox';
import type { Trajectory, Turn } from '@swefarm/shared';
import type { AgentEnd } from '../agent/agent.ts';
import type { AgentSandbox } from './containers.ts';
import type { Task } from './context.ts';

/** An agent that is ready to begin; disposing it releases its resources outside the sandbox. */
export type OpenedAgent = Disposable & {
  /** Folders of this machine that the sandbox gets; absent: none. */
  mounts?: readonly Mount[];
  work(sandbox: AgentSandbox): Promise<AgentEnd>;
  /** Returns the seconds in which the agent's clock was stopped. */
  pausedSeconds(): number;
  /** Pace of the policy, as in RewardFacts. */
  policyPace(): number | null;
};

/** Records the last turn of a trajectory with one line, whose commands have ended. */
export function recordTurn(task: Task, trajectory: Trajectory): void {
  showTurn(task, trajectory);
  const turn = trajectory.turns.at(-1);
  if (turn) countTurn(task, turn);
}

/** Records the last turn of a trajectory without counting the turn, which an earlier attempt counted. */
export function showTurn(task: Task, trajectory: Trajectory): void {
  task.trace.trajectory = trajectory;
  task.live.turns(trajectory);
}

/** Records a turn of any line. */
export function recordTurnOfLine(task: Task, trajectory: Trajectory, turn: Turn): void {
  task.trace.trajectory = trajectory;
  task.live.turnOfLine(trajectory, turn);
  countTurn(task, turn);
}

function countTurn({ services: { metrics } }: Task, turn: Turn): void {
  metrics.turns.inc();
  metrics.modelSeconds.observe(turn.model_seconds);
  metrics.tokens.inc({ side: 'prompt' }, turn.usage?.prompt_tokens ?? 0);
  metrics.tokens.inc({ side: 'completion' }, turn.usage?.completion_tokens ?? 0);
  for (const command of turn.commands) metrics.commandSeconds.observe(command.seconds);
}
