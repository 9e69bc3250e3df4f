/** The forms of access packages. Pure. */
import type { AccessPackage, PackageChain, WeeklyHours } from "../api/types";
import { hoursBody, hoursError } from "./hours";
import { durationChoices, durationError, durationSeconds } from "./request";
import type { Draftable, DurationValue } from "./request";

/** PackagePart is the access of a package to one resource in the form. */
export interface PackagePart {
  resource: string;
  actions: string[];
}

/** PackageForm contains the values of the form for a version of a package. */
export interface PackageForm {
  name: string;
  title: string;
  description: string;
  team: string;
  duration: DurationValue;
  hours?: WeeklyHours | undefined;
  chain: PackageChain;
  parts: PackagePart[];
  /** toHolders gives the version to the applications that hold the package. */
  toHolders?: boolean | undefined;
  reason: string;
}

/** partLimit is the maximum number of resources of a package, as in api/openapi.yaml. */
export const partLimit = 50;

/** packageName matches the names of packages, as in api/openapi.yaml. */
export const packageName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** durationOf returns the value of the field for a number of seconds; absent means until revoked. */
export function durationOf(seconds: number | undefined): DurationValue {
  const hours = (seconds ?? 0) / 3600;
  if (seconds === undefined) return { duration: "revoked", customAmount: 12, customUnit: "hours" };
  const offered = durationChoices.find((choice) => Number(choice) * 24 === hours);
  if (offered !== undefined) return { duration: offered, customAmount: 12, customUnit: "hours" };
  return hours % 24 === 0 ? { duration: "custom", customAmount: hours / 24, customUnit: "days" } : { duration: "custom", customAmount: hours, customUnit: "hours" };
}

/** formOf returns the form for the next version of a package. */
export function formOf(of: AccessPackage): PackageForm {
  return {
    name: of.name,
    title: of.title,
    description: of.description ?? "",
    team: of.team.id,
    duration: durationOf(of.durationSeconds),
    hours: of.hours,
    chain: of.chain,
    parts: of.resources.map(({ resource, actions }) => ({ resource: resource.id ?? "", actions })),
    reason: "",
  };
}

/** isWhole reports whether a part can be sent. */
export const isWhole = ({ resource, actions }: PackagePart): boolean => resource !== "" && actions.length > 0;

/** packageBody returns the request to publish a version. It is undefined while the form is not complete. */
export function packageBody(form: PackageForm): Draftable | undefined {
  const { name, title, description, team, duration, hours, chain, parts, toHolders } = form;
  const seconds = durationSeconds(duration);
  if (!packageName.test(name) || title.trim() === "" || team === "" || parts.length === 0 || parts.length > partLimit || !parts.every(isWhole)) return undefined;
  if (durationError(duration) || hoursError(hours)) return undefined;
  return {
    kind: "package",
    items: [
      {
        package: {
          name,
          title: title.trim(),
          team,
          chain,
          resources: parts,
          ...(description.trim() === "" ? {} : { description: description.trim() }),
          ...(seconds === undefined ? {} : { durationSeconds: seconds }),
          ...(hours ? { hours: hoursBody(hours) } : {}),
          ...(toHolders ? { toHolders } : {}),
        },
      },
    ],
  };
}

/** packageRequestBody returns the request of a package for an application. It is undefined while the form is not complete. */
export function packageRequestBody(of: Pick<AccessPackage, "name" | "version" | "durationSeconds">, application: string, duration: DurationValue): Draftable | undefined {
  const seconds = durationSeconds(duration);
  if (application === "" || durationError(duration, of.durationSeconds)) return undefined;
  return { items: [{ application }], package: { name: of.name, version: of.version }, ...(seconds === undefined ? {} : { durationSeconds: seconds }) };
}
