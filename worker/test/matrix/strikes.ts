/** Faults from outside the rollout: engines that stop, sandboxes that are killed, disks and memory that others use. */
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Container, ContainerState, Runtime } from '@swefarm/sandbox';
import { findInit } from '@swefarm/sandbox';
import { type FailureClass, poll, RolloutFailure } from '@swefarm/shared';
import { replacing } from './scene.ts';

type Role = 'agent' | 'evaluation';
const failure = (failureClass: FailureClass) => new RolloutFailure(failureClass, `made: ${failureClass}`);
export const rejecting = (failureClass: FailureClass) => () => Promise.reject(failure(failureClass));

const changed =
  (role: Role, change: (container: Container, runtime: Runtime) => Container) =>
  (runtime: Runtime): Runtime =>
    replacing(runtime, {
      start: async (spec, signal) => {
        const container = await runtime.start(spec, signal);
        return spec.role === role ? change(container, runtime) : container;
      },
    });
export const notStarting = (role: Role, failureClass: FailureClass) => (runtime: Runtime) =>
  replacing(runtime, {
    start: (spec, signal) =>
      spec.role === role ? Promise.reject(failure(failureClass)) : runtime.start(spec, signal),
  });
/** Only every other container of an evaluation starts: that of the patch, but not that of the control. */
export const noControl = (inner: (runtime: Runtime) => Runtime) => (runtime: Runtime) => {
  const other = inner(runtime);
  let started = 0;
  return replacing(other, {
    start: (spec, signal) =>
      spec.role === 'evaluation' && ++started % 2 === 0
        ? Promise.reject(failure('sandbox_start'))
        : other.start(spec, signal),
  });
};

type Strike = (container: Container, runtime: Runtime) => Promise<unknown>;
/** Kills process 1 from outside, as an operator or the kernel does. */
export const killed: Strike = async ({ id }, runtime) => {
  if (runtime.name === 'docker') {
    execFileSync('docker', ['kill', id], { stdio: 'ignore' });
    return;
  }
  // On a busy machine one search may miss the process.
  const pid = await poll(() => findInit(id), { tries: 30, pauseMs: 100 });
  if (pid !== null) process.kill(pid, 'SIGKILL');
};
export const removed: Strike = ({ id }, runtime) => runtime.remove(id);

/** The fault occurs while the agent's shell is open. */
export const underShell = (strike: Strike) =>
  changed('agent', (container, runtime) =>
    replacing(container, {
      open: async (argv, signal) => {
        const stream = await container.open(argv, signal);
        void sleep(1_500).then(() => strike(container, runtime));
        return stream;
      },
    }),
  );
/** The fault occurs while the tests run. */
export const underTests = (strike: Strike) =>
  changed('evaluation', (container, runtime) =>
    replacing(container, {
      exec: async (argv, options) => {
        if (argv[0] === '/bin/bash' && argv.length === 2)
          void sleep(500).then(() => strike(container, runtime));
        return container.exec(argv, options);
      },
    }),
  );
/** The engine of this container stops answering at the given exec. */
export const engineAway = (role: Role, at: (argv: readonly string[]) => boolean) =>
  changed(role, (container) => {
    let away = false;
    return replacing(container, {
      exec: (argv, options) => {
        away ||= at(argv);
        return away ? Promise.reject(failure('engine_unreachable')) : container.exec(argv, options);
      },
      state: () => (away ? Promise.reject(failure('engine_unreachable')) : container.state()),
    });
  });
export const isTests = (argv: readonly string[]): boolean => argv[0] === '/bin/bash' && argv.length === 2;
export const isTaking = (argv: readonly string[]): boolean => argv.includes('take');

/** The exec that `at` selects fails, and the container continues to run. */
export const failing = (role: Role, at: (argv: readonly string[]) => boolean, failureClass: FailureClass) =>
  changed(role, (container) =>
    replacing(container, {
      exec: (argv, options) =>
        at(argv) ? Promise.reject(failure(failureClass)) : container.exec(argv, options),
    }),
  );
/** The exec ends without a code, and the container is then in this state. */
export const ending = (at: (argv: readonly string[]) => boolean, state: ContainerState) =>
  changed('evaluation', (container) => {
    let ended = false;
    return replacing(container, {
      exec: async (argv, options) => {
        if (!at(argv)) return container.exec(argv, options);
        ended = true;
        return { exitCode: null, timedOut: false, output: Buffer.alloc(0), outputBytes: 0, truncated: false };
      },
      state: () => (ended ? Promise.resolve(state) : container.state()),
    });
  });
/** A lack of memory on the node kills processes of a sandbox below its own limit. */
export const byOthersMemory = changed('evaluation', (container) =>
  replacing(container, { oomKills: async () => 1, wasFull: async () => false }),
);
/** Another process fills the node's disk when the exec that `at` selects begins in a container of this role. */
export const filledDisk =
  (role: Role, at: (argv: readonly string[]) => boolean) =>
  (runtime: Runtime): Runtime => {
    let isFull = false;
    const other = changed(role, (container) => {
      isFull = false;
      return replacing(container, {
        exec: async (argv, options) => {
          isFull ||= at(argv);
          return container.exec(argv, options);
        },
        diskUse: async () => ({ bytes: 4096, share: 0 }),
      });
    })(runtime);
    return replacing(other, { diskFree: async () => (isFull ? 0 : 1e12) });
  };
/** Another process fills the node's disk from 0.5 s to 2.5 s after the agent's shell opens. */
export const filledForAWhile = (runtime: Runtime): Runtime => {
  let from = Number.POSITIVE_INFINITY;
  const other = changed('agent', (container) =>
    replacing(container, {
      open: async (argv, signal) => {
        from = performance.now();
        return container.open(argv, signal);
      },
      diskUse: async () => ({ bytes: 4096, share: 0 }),
    }),
  )(runtime);
  const isFull = (): boolean => Math.abs(performance.now() - from - 1_500) < 1_000;
  return replacing(other, { diskFree: async () => (isFull() ? 0 : 1e12) });
};
