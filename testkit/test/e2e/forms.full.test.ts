/** Runs the cases of forms.e2e.test.ts on Docker. */
import { exampleFormSuite } from './exampleforms.ts';

exampleFormSuite('docker');
