/** Short names for the generated schemas, so that no other file spells the path. */
import type { components } from "./schema.gen";

type Schemas = components["schemas"];

export type Me = Schemas["Me"];
export type Role = Schemas["Role"];
export type Person = Schemas["Person"];
export type OwnerRef = Schemas["OwnerRef"];
export type Application = Schemas["Application"];
export type Resource = Schemas["Resource"];
export type Sensitivity = Schemas["Sensitivity"];
export type Mode = Schemas["Mode"];
export type Protection = Schemas["Protection"];
export type ClusterState = Schemas["ClusterState"];
export type CatalogRef = Schemas["CatalogRef"];
export type Access = Schemas["Access"];
export type Connection = Schemas["Connection"];
export type ConnectionList = Schemas["ConnectionList"];
export type Decision = Schemas["Decision"];
export type Ticket = Schemas["Ticket"];
export type TicketState = Schemas["TicketState"];
export type TicketEvent = Schemas["Event"];
export type TicketPreview = Schemas["TicketPreview"];
export type NewTicket = Schemas["NewTicket"];
export type Step = Schemas["Step"];
export type StepState = Schemas["StepState"];
export type Problem = Schemas["Problem"];
