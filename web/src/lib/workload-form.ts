/** WorkloadForm is the input of the dialog that registers one machine. */
export interface WorkloadForm {
  id: string;
  /** The id of the application that the machine acts as. */
  application: string;
  addresses: string[];
  description: string;
}

/** isWorkloadForm reports whether a stored value has the shape of the form. */
export function isWorkloadForm(value: unknown): value is WorkloadForm {
  if (typeof value !== "object" || value === null) return false;
  const { addresses, ...form } = value as Record<string, unknown>;
  return (["id", "application", "description"] as const).every((name) => typeof form[name] === "string") && Array.isArray(addresses) && addresses.every((each) => typeof each === "string");
}
