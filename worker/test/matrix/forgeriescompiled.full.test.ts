/** The matrix of forgeries in Go and Rust, whose compilers are slow. */
import { GO_LANGUAGE, RUST_LANGUAGE } from './forgeriescompiled.ts';
import { languageMatrix } from './forgerieslanguages.ts';

languageMatrix(GO_LANGUAGE);
languageMatrix(RUST_LANGUAGE);
