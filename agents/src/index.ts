export { type Bundle, BundleManifest, mountPath } from './bundle.ts';
export { cardSchema } from './card/cardschema.ts';
export { type AgentStart, fillCard, type StartValues } from './card/fillcard.ts';
export { cardDigest, type OptionValues, requireFileOptions, typedOptions } from './card/options.ts';
export {
  lockPath,
  parseCard,
  readCard,
  readShippedCard,
  shippedCardPath,
  shippedCards,
} from './card/readcard.ts';
export type { BuildContext } from './install/builder.ts';
export { type InstallOptions, installCard, relockCard } from './install/install.ts';
export { checkStart, type StartCheck } from './install/start.ts';
export {
  bundleLabels,
  findBundle,
  type Installation,
  installBundle,
  isIntact,
  isLabelled,
  listBundles,
} from './store/store.ts';
