/** What is measured on: the test kit's smallest instance, in the engine that is measured. */
import { importTree, type Subject } from '@swefarm/testkit';
import { SOCKET } from './engine.ts';

export { prepareSubject, type Subject } from '@swefarm/testkit';

/** Hands the image to the engine, unless it has it. */
export const importSubject = (subject: Subject): Promise<void> =>
  importTree(SOCKET, subject.tree, subject.image);
