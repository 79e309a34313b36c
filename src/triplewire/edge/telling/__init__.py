"""How clients are told: rooms and channels for those who get the same bytes, readers for those with their own pace."""
