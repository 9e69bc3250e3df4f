/** Tables of the catalog, as files. */
import type { Application, CatalogSource, ClassInfo, Entity, Resource, SyncChange, Workload, WorkloadResults } from "../../api/types";
import type { CsvTable } from "../csv";
import { clusters, people } from "./cells";

/** applicationsCSV is the table of applications. */
export const applicationsCSV: CsvTable<Application> = {
  file: "applications",
  columns: {
    id: (row) => row.id,
    name: (row) => row.name,
    title: (row) => row.title,
    description: (row) => row.description,
    environment: (row) => row.environment,
    owners: (row) => people(row.owners),
    "refused in 24 hours": (row) => row.denied24h,
  },
};

/** resourcesCSV is the table of resources. */
export const resourcesCSV: CsvTable<Resource> = {
  file: "resources",
  columns: {
    id: (row) => row.id,
    name: (row) => row.name,
    title: (row) => row.title,
    description: (row) => row.description,
    class: (row) => row.class,
    environment: (row) => row.environment,
    sensitivity: (row) => row.sensitivity,
    mode: (row) => row.protection?.effectiveMode,
    members: (row) => clusters(row.protection?.clusters, row.protection?.members),
    owners: (row) => people(row.owners),
    "refused in 24 hours": (row) => row.denied24h,
  },
};

/** entitiesCSV is the table of the catalog. */
export const entitiesCSV: CsvTable<Entity> = {
  file: "catalog",
  columns: {
    kind: (row) => row.kind,
    id: (row) => row.id,
    title: (row) => row.title,
    name: (row) => row.name,
    description: (row) => row.description,
    owners: (row) => row.owners,
    environment: (row) => row.environment,
    sensitivity: (row) => row.sensitivity,
    email: (row) => row.email,
    leader: (row) => row.leader,
    parent: (row) => row.parent,
    members: (row) => row.members,
    source: (row) => row.source,
    gone: (row) => row.gone ?? false,
  },
};

/** workloadsCSV is the table of external workloads. */
export const workloadsCSV: CsvTable<Workload> = {
  file: "external-workloads",
  columns: {
    id: (row) => row.id,
    subject: (row) => row.subject,
    addresses: (row) => row.addresses,
    description: (row) => row.description,
    source: (row) => row.source,
    accepted: (row) => row.accepted,
    message: (row) => row.message?.text,
  },
};

/** workloadResultsCSV is the table of what became of the machines of an upload. */
export const workloadResultsCSV: CsvTable<WorkloadResults["items"][number]> = {
  file: "upload-results",
  columns: { id: (row) => row.id, outcome: (row) => row.outcome, "needs approval": (row) => row.needsApproval ?? false, application: (row) => row.application, message: (row) => row.message?.text },
};

/** actionsCSV is the table of the actions of a resource. */
export const actionsCSV = (resource: string): CsvTable<Resource["actions"][number]> => ({
  file: `actions-${resource}`,
  columns: { action: (row) => row.name, ports: (row) => row.ports },
});

/** syncChangesCSV is the table of what a sync would change. */
export const syncChangesCSV = (source: string): CsvTable<SyncChange> => ({
  file: `sync-${source}`,
  columns: {
    change: (row) => row.verb,
    kind: (row) => row.kind,
    id: (row) => row.id,
    title: (row) => row.title,
    fields: (row) => row.fields?.map(({ field, before, after }) => `${field}: ${before} → ${after}`),
    consequences: (row) => row.consequences?.map(({ text }) => text),
  },
});

/** sourcesCSV is the table of the sources of the catalog. */
export const sourcesCSV: CsvTable<CatalogSource> = {
  file: "catalog-sources",
  columns: { source: (row) => row.id, kind: (row) => row.kind, location: (row) => row.location, entities: (row) => row.entities, gone: (row) => row.gone, "last sync": (row) => row.lastSync },
};

/** classesCSV is the table of classes. */
export const classesCSV: CsvTable<ClassInfo> = {
  file: "classes",
  columns: { kind: (row) => row.kind, name: (row) => row.name, pattern: (row) => row.pattern, "label key": (row) => row.labelKey, objects: (row) => row.members, accepted: (row) => row.accepted, message: (row) => row.message?.text },
};
