import { catalog } from "./catalog";
import { common } from "./common";
import { decisions } from "./decisions";
import { fleet } from "./fleet";
import { flows } from "./flows";
import { governance } from "./governance";
import { own } from "./own";
import { packages } from "./packages";
import { request } from "./request";
import { reviews } from "./reviews";
import { rollout } from "./rollout";
import { terms } from "./terms";
import { tickets } from "./tickets";
import { traffic } from "./traffic";

/** zh 是全部中文文本。 */
export const zh = { ...common, ...catalog, ...tickets, ...decisions, ...request, ...own, ...packages, ...governance, ...flows, ...fleet, ...rollout, ...terms, ...reviews, ...traffic };
