/** Tests families whose images have a conda environment, with a real package: gold, no change, an unrelated change, and a search. */
import { exampleFormSuite } from './exampleforms.ts';

exampleFormSuite('rootfs');
