/** The instance of all measurements: testkit's smallest instance, in the measured engine. */
import { importTree, type Subject } from '@swefarm/testkit';
import { SOCKET } from './engine.ts';

export { prepareSubject, type Subject } from '@swefarm/testkit';

/** Imports the image into the engine unless it is there. */
export const importSubject = (subject: Subject): Promise<void> =>
  importTree(SOCKET, subject.tree, subject.image);
