import { catalog } from "./catalog";
import { common } from "./common";
import { tickets } from "./tickets";

export const en = { ...common, ...catalog, ...tickets };
