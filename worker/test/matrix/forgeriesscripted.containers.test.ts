/** The matrix of forgeries in JavaScript. */
import { NODE_LANGUAGE } from './forgeriescompiled.ts';
import { languageMatrix } from './forgerieslanguages.ts';

languageMatrix(NODE_LANGUAGE);
