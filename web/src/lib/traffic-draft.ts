/** Where the draft that is laid over the traffic map is kept: in the browser's tab, because a policy is too long for an address. */
const place = "acp.traffic-draft";

/** mostDraft is the maximum length of a draft in characters, as in api/openapi.yaml. */
export const mostDraft = 65_536;

/** keepDraft keeps a policy for this tab. It returns false if the browser does not keep it. */
export function keepDraft(policy: string): boolean {
  try {
    sessionStorage.setItem(place, policy);
    return true;
  } catch {
    return false;
  }
}

/** keptDraft returns the policy that was kept last in this tab, or an empty text. */
export function keptDraft(): string {
  try {
    return sessionStorage.getItem(place) ?? "";
  } catch {
    return "";
  }
}

/** forgetDraft removes what was kept. */
export function forgetDraft(): void {
  try {
    sessionStorage.removeItem(place);
  } catch {
    // Nothing was kept.
  }
}
