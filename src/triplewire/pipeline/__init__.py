"""The pipeline: one Spark application that matches and stores what the log holds."""
