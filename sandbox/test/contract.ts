import { afterAll, beforeAll, describe } from 'vitest';
import { blameContract } from './attribution-contract.ts';
import { remainsContract } from './changes-contract.ts';
import { containerContract } from './container-contract.ts';
import { leftoversContract } from './leftovers-contract.ts';
import { listeningContract } from './listening-contract.ts';
import { memoryContract } from './memory-contract.ts';
import { mountsContract } from './mounts-contract.ts';
import { patchContract } from './patch-contract.ts';
import { schedulerContract } from './scheduler-contract.ts';
import { setupContract } from './setup-contract.ts';
import { shellContract } from './shell-contract.ts';
import { standingContract } from './standing-contract.ts';
import { type ContractOptions, describeIf, type Subject } from './subject.ts';

/** Runs all contract suites. `makeSubject` is called once, and its runtime is disposed at the end. */
export function sandboxContract(
  name: string,
  makeSubject: () => Promise<Subject>,
  options: ContractOptions,
): void {
  describe(`sandbox contract: ${name}`, () => {
    let subject: Subject;
    beforeAll(async () => {
      subject = await makeSubject();
    });
    afterAll(async () => {
      await subject.runtime[Symbol.asyncDispose]();
    });
    describe('shell', () => shellContract(() => subject, options));
    describe('container', () => containerContract(() => subject, options));
    describeIf(options.isolated, 'standing', () => standingContract(() => subject));
    describe('listening', () => listeningContract(() => subject, options));
    describe('leftovers', () => leftoversContract(() => subject));
    describeIf(options.isolated, 'mounts', () => mountsContract(() => subject));
    describe('patch', () => patchContract(() => subject, options));
    describeIf(options.isolated, 'setup', () => setupContract(() => subject, options));
    describeIf(options.isolated, 'blame', () => blameContract(() => subject));
    describeIf(options.children === true, 'scheduler', () => schedulerContract(() => subject));
    describeIf(options.isolated, 'what is left', () => remainsContract(() => subject));
    const { memory } = options.limits;
    if (memory) describe('memory limit', () => memoryContract(() => subject, memory));
  });
}
