/** What the agent `installed` gets from its rollout, and tells it. */
import type { Container, Suspect } from '@swefarm/sandbox';
import type { AgentCard, AgentOutput, InstalledAgent, Log, Trajectory, Turn } from '@swefarm/shared';
import type { AgentTask, PolicyOfLines } from '../agent.ts';

/** `activate`: shell text that activates the environment of the image. */
export type InstalledTask = AgentTask & { card: AgentCard; activate: string };

export type InstalledDeps = {
  container: Container;
  suspect: Suspect;
  policy: PolicyOfLines;
  signal: AbortSignal;
  log: Log;
  beforeTurn?: (trajectory: Trajectory) => void;
  onTurn?: (trajectory: Trajectory, turn: Turn) => void;
  /** Called once when the program has ended, also by a failure. */
  onFacts: (facts: InstalledFacts) => void;
  onOutputs: (outputs: AgentOutput[]) => void;
};

export type InstalledFacts = Omit<InstalledAgent, 'name' | 'version' | 'card' | 'digest'>;
