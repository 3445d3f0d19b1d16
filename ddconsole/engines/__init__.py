"""What an inference server looks like: its command line, its log, its readiness and its failures."""
