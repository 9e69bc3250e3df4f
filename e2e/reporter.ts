import type { FullConfig, FullResult, Reporter, Suite, TestCase, TestResult } from '@playwright/test/reporter';

/** Prints a line per test, says how many were not run because no time was left (test.ts), and closes with "N passed, N failed", which is what CI reads. */
export default class PlainReporter implements Reporter {
  private passed = 0;
  private failed = 0;
  private notRun = 0;
  private started = 0;

  onBegin(_config: FullConfig, suite: Suite): void {
    this.started = suite.allTests().length;
    console.log(`e2e: ${this.started} tests`);
  }

  onTestEnd(test: TestCase, result: TestResult): void {
    const seconds = (result.duration / 1000).toFixed(1);
    if (result.status === 'skipped') {
      this.notRun++;
      console.log(`  NOT RUN ${name(test)}${test.annotations.map(({ description }) => `: ${description ?? ''}`).join('')}`);
      return;
    }
    const ok = result.status === test.expectedStatus && result.status === 'passed';
    if (ok) this.passed++;
    else this.failed++;
    console.log(`  ${ok ? 'ok  ' : 'FAIL'} ${name(test)} (${seconds} s)`);
    if (!ok) {
      for (const error of result.errors) console.log(indent(error.stack ?? error.message ?? String(error.value)));
    }
  }

  onError(error: { message?: string; stack?: string }): void {
    console.log(indent(error.stack ?? error.message ?? 'unknown error'));
  }

  onEnd(result: FullResult): void {
    // Tests that were neither run nor skipped count as failed, so that a failed global set-up is not reported as success.
    const missing = Math.max(this.started - this.passed - this.failed - this.notRun, result.status === 'passed' ? 0 : this.failed ? 0 : 1);
    if (this.notRun > 0) console.log(`${this.notRun} of ${this.started} tests were NOT RUN`);
    console.log(`e2e: the tests took ${(result.duration / 1000).toFixed(0)} s`);
    console.log(`${this.passed} passed, ${this.failed + missing} failed`);
  }
}

function name(test: TestCase): string {
  return test.titlePath().slice(2).join(' › ');
}

function indent(text: string): string {
  return text.replace(/^/gm, '       ');
}
