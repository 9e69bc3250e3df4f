/** The names of a statement in sentences about it. */
import type { StatementScope } from "../api/types";
import { NameList } from "./Names";

/** scopeElements returns the elements of a sentence about a statement: the lists of its subjects and of its resources, each with at most `limit` names. */
export const scopeElements = ({ subjects, subjectRefs, resources, resourceRefs }: StatementScope, limit?: number) => ({
  subjects: <NameList names={subjects} refs={subjectRefs} limit={limit} />,
  resources: <NameList names={resources} refs={resourceRefs} limit={limit} />,
});
