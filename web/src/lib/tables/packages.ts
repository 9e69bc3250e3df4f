/** Tables of access packages, as files. */
import type { AccessPackage, PackageHolder, PackageSummary, PackageUpdateApplication, Use } from "../../api/types";
import type { CsvTable } from "../csv";
import { lastUsed, people, person } from "./cells";

/** packagesCSV is the table of access packages. */
export const packagesCSV: CsvTable<PackageSummary> = {
  file: "access-packages",
  columns: {
    package: (row) => row.name,
    title: (row) => row.title,
    description: (row) => row.description,
    team: (row) => `${row.team.displayName} (${row.team.id})`,
    chain: (row) => row.chain,
    resources: (row) => row.resources,
    version: (row) => row.version,
    published: (row) => row.publishedAt,
    archived: (row) => row.archived,
  },
};

/** packageHoldersCSV is the table of the applications that hold access by a package. */
export const packageHoldersCSV = (name: string, lastUse: (row: PackageHolder) => Use): CsvTable<PackageHolder> => ({
  file: `package-holders-${name}`,
  columns: {
    application: (row) => row.application.name,
    title: (row) => row.application.title,
    version: (row) => row.version,
    accesses: (row) => row.items,
    "last used": (row) => lastUsed(lastUse(row)),
    tickets: (row) => row.tickets,
    reason: (row) => row.reason,
    ends: (row) => row.expiresAt,
  },
});

/** packageUpdateCSV is the table of what becomes of each holder that is given a version. */
export const packageUpdateCSV = (name: string, version: number): CsvTable<PackageUpdateApplication> => ({
  file: `package-update-${name}-${version}`,
  columns: { application: (row) => row.application.name, title: (row) => row.application.title, state: (row) => row.state, ticket: (row) => row.ticket, message: (row) => row.message?.text },
});

/** packageResourcesCSV is the table of the resources of a package. */
export const packageResourcesCSV = (name: string): CsvTable<AccessPackage["resources"][number]> => ({
  file: `package-${name}`,
  columns: { resource: (row) => row.resource.name, title: (row) => row.resource.title, actions: (row) => row.actions, owners: (row) => people(row.owners) },
});

/** packageVersionsCSV is the table of the versions of a package. */
export const packageVersionsCSV = (name: string): CsvTable<AccessPackage["versions"][number]> => ({
  file: `package-versions-${name}`,
  columns: { version: (row) => row.number, "published by": (row) => person(row.publishedBy), published: (row) => row.publishedAt, ticket: (row) => row.ticket, digest: (row) => row.digest },
});
