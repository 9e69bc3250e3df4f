package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// profiledTime is the time of a profile. If the push ends earlier, the rest of the time adds almost nothing to the profile.
const profiledTime = 20 * time.Second

// profile writes a profile of the adapter's processor time from now on, if one was asked for, and sends the outcome when it is complete.
func (r *run) profile(ctx context.Context, wanted bool) <-chan error {
	done := make(chan error, 1)
	if !wanted || r.Profile == "" {
		close(done)
		return done
	}
	go func() {
		done <- r.download(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", r.pprof(), profiledTime.Seconds()), r.Profile)
	}()
	return done
}

func (r *run) download(ctx context.Context, url, file string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the profile %s: %w", file, err)
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the adapter answered %s", response.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, response.Body)
	return errors.Join(err, out.Close())
}
