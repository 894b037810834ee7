/** One program that is measured beside the others. */

/** `rollouts`: an agent works, nothing is graded. `graded`: both. `evaluations`: a patch that is there is graded. */
export type Work = 'rollouts' | 'graded' | 'evaluations';

export type Peer = {
  name: string;
  work: Work;
  /** What its time contains beside the work, for whoever reads the table. */
  counts: string;
  /** Whatever must be up before the clock starts. */
  prepare?(parallel: number): Promise<void>;
  /** Does `count` of them, `parallel` at a time, and checks what came out; seconds. `round`: a name that is new each time. */
  run(count: number, parallel: number, round: string): Promise<number>;
};

/** Opens whatever the program needs for all its runs. @throws Error that says why it cannot be measured here */
export type OpenPeer = (stack: AsyncDisposableStack) => Promise<Peer[]>;

export const secondsSince = (from: number): number => (performance.now() - from) / 1000;
