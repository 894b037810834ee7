/** Families whose images hold a conda environment, with a real package and its real tests: gold, nothing, something else, and a search. */
import { exampleFormSuite } from './exampleforms.ts';

exampleFormSuite('rootfs');
