/** The same table of cases as in forms.e2e.test.ts, on Docker. */
import { exampleFormSuite } from './exampleforms.ts';

exampleFormSuite('docker');
