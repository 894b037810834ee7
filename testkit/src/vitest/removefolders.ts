import { afterAll } from 'vitest';
import { removeTemporaryFolders } from '../../test/temporaryfolder.ts';

// vitest runs the hooks in reverse order: this one after those of the test file.
afterAll(removeTemporaryFolders);
