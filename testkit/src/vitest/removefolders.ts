import { afterAll } from 'vitest';
import { removeTemporaryFolders } from '../../test/temporaryfolder.ts';

// vitest runs afterAll hooks in reverse order, so this hook runs after those of the test file.
afterAll(removeTemporaryFolders);
