"""An HTTP service over durable agents: `gainful serve`. Needs the extra `serve`."""
